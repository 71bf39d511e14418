#!/usr/bin/env bash
# train_step_perf as a program: tiny training steps over processes, threads and TCP, every gradient compared; what it
# refuses, and what it prints. Usage: train_step_test.sh FOLDER_OF_THE_BINARIES
set -euo pipefail
perf=$1
source "$(dirname "${BASH_SOURCE[0]}")/perf_expect.sh"

small=(--workload resnet50@dear --scale-bytes 0.002 --scale-time 0.02 --rounds 2 --steps 2)
all=naive,wfbp,sync,threshold:20K,nearby:8,mgwfbp_paper,optimal,dear:20K:eager,dear:20K:lookahead,split_optimal:shared,split_optimal:free,priority:4K,us_byte:4K,auto
right='Out of bounds values : 0 OK'
# runs POLICIES: each has a row without wrong elements.
runs() {
  local policy
  for policy in ${1//,/ }; do
    grep -qE "^  $policy +([0-9.]+ +)+0( |$)" "$folder/out" || { cat "$folder/out"; fail "no row of $policy without wrong elements"; }
  done
}

expect 0 "$right" "$perf/train_step_perf" -P 2 --check 1 --policy "$all" "${small[@]}"
runs "$all"
expect 0 "$right" "$perf/train_step_perf" -t 3 --check 1 --memory together --policy wfbp,threshold,split_optimal "${small[@]}"
runs wfbp,threshold,split_optimal
expect 0 "$right" env TRESTLE_TRANSPORT=tcp "$perf/train_step_perf" -P 2 -t 2 --check 1 --policy dear:20K,sync "${small[@]}"
runs dear:20K,sync
expect 0 "$right" "$perf/train_step_perf" --check 1 --policy wfbp,auto "${small[@]}"
runs wfbp,auto

# Costs that are given are not measured. Compute times follow from the balance.
given=(--cost 1e-3,1e-9 --cost-half 5e-4,5e-10)
expect 0 'costs and times are given$' "$perf/train_step_perf" -t 2 "${given[@]}" --policy optimal,wfbp "${small[@]}"
expect 0 ', 2\.000 of the compute time$' "$perf/train_step_perf" -t 2 "${given[@]}" --workload vgg19@deft --scale-bytes 0.001 --balance 2 \
  --policy wfbp --rounds 1

# A policy that is refused is a row, not the end.
expect 0 '^  deft +not carried out: GradPlan: .*allow' "$perf/train_step_perf" -t 2 "${given[@]}" --policy deft,wfbp "${small[@]}"
grep -qE '^  wfbp +[0-9]' "$folder/out" || fail "nothing behind a policy that is refused"

# Policies that delay or compress are carried out where they are allowed. What they leave pending is brought in before
# the next one. Their results are not compared.
expect 0 "$right" "$perf/train_step_perf" -t 2 --check 1 "${given[@]}" --allow stale,compression \
  --policy deft:20K,topk:0.1,topk:1,wfbp,auto "${small[@]}"
runs topk:1,wfbp
for policy in deft:20K topk:0.1; do
  grep -qE "^  $policy +([0-9.]+ +)+N/A" "$folder/out" || { cat "$folder/out"; fail "no row of $policy"; }
done
expect 0 '^  topk:0.1 +not carried out: GradPlan: .*allow' "$perf/train_step_perf" -t 2 "${given[@]}" --allow stale \
  --policy topk:0.1,wfbp "${small[@]}"
expect 255 'topk:2' "$perf/train_step_perf" --policy topk:2
expect 255 "'all' is not a liberty" "$perf/train_step_perf" --allow all

# Links are communicators of their own. A policy that delays uses all of them.
expect 0 '^# Links: a communicator over lo, over lo$' env TRESTLE_TRANSPORT=tcp "$perf/train_step_perf" -P 2 --check 1 --link lo --link lo \
  --allow stale --policy deft:20K,wfbp "${small[@]}"
runs wfbp
grep -qE '^  deft:20K +([0-9.]+ +)+N/A  [0-9.]+ updates a step, simulated [0-9.]+$' "$folder/out" || { cat "$folder/out"; fail "deft tells no updates"; }
expect 255 '--link names no rail' "$perf/train_step_perf" --link ''

# A wrong gradient is found and named, on the rank that has it.
for steps in 1 7; do
  expect 7 'Out of bounds values : 1 FAILED' "$perf/train_step_perf" -P 2 --check 1 --spoil $steps --policy wfbp,sync "${small[@]}"
  grep -qE '^# rank 0: tensor 0 \(.+\), element 0: [0-9]+ instead of [0-9]+$' "$folder/err" || { cat "$folder/err"; fail "the wrong gradient has no name"; }
done

if command -v python3 >/dev/null; then
  expect 0 '^\{' "$perf/train_step_perf" -P 2 --json --check 1 --policy auto,deft,wfbp,sync "${small[@]}"
  python3 - "$folder/out" <<'PYTHON' || { cat "$folder/out"; fail "the JSON is wrong"; }
import json, sys
report = json.load(open(sys.argv[1]))
assert report["ranks"] == 2 and report["tensors"] == 161 and report["checked"] and report["measured_times"]
auto, deft, wfbp, sync = report["policies"]
assert auto["policy"] == "auto" and auto["chosen"] != "auto" and not deft["carried_out"] and "allow" in deft["why"]
assert len(wfbp["iterations_s"]) == 2 and wfbp["iteration_s"] > 0 and wfbp["simulated_s"] > 0 and wfbp["wrong"] == 0
assert wfbp["messages"] == 161 and wfbp["bytes"] == report["bytes"] and wfbp["copied_bytes"] == 0
assert sync["messages"] == 1 and sync["bytes"] == report["bytes"] and sync["copied_bytes"] == 2 * report["bytes"]
ready = wfbp["grad_ready_ns"]
assert ready["calls"] == 2 * 2 * 2 * 161 and 0 < ready["p50"] <= ready["p99"] <= ready["max"]
PYTHON
  expect 0 '^\{' "$perf/train_step_perf" -t 2 --json --memory together --policy sync "${given[@]}" "${small[@]}"
  grep -q '"copied_bytes":0,' "$folder/out" || fail "tensors that lie together were copied"
fi

# A workload of the user.
cat >"$folder/own.json" <<'JSON'
{"tensors": [{"name": "first", "bytes": 12, "forward_s": 0.001, "backward_s": 0.002},
             {"name": "none", "bytes": 0, "forward_s": 0, "backward_s": 0},
             {"name": "last", "bytes": 70001, "forward_s": 0.001, "backward_s": 0.002}]}
JSON
expect 0 "$right" "$perf/train_step_perf" -t 2 --check 1 --workload "$folder/own.json" --policy wfbp,sync,split_optimal --rounds 1
runs wfbp,sync,split_optimal

expect 255 "'own.json' is not a built-in|own.json.*cannot be opened" "$perf/train_step_perf" --workload own.json
expect 255 'alexnet has no compute time' "$perf/train_step_perf" --workload alexnet
expect 255 "'fastest' is not a policy; there are naive" "$perf/train_step_perf" --policy fastest
expect 255 'takes a whole number from 1 up' "$perf/train_step_perf" --rounds 0
expect 255 'are free: give a smaller --scale-bytes' "$perf/train_step_perf" -P 2 --scale-bytes 5000
expect 255 'has started 2' env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 "$perf/train_step_perf" -P 2
expect 0 '--balance' "$perf/train_step_perf" -h
echo fine
