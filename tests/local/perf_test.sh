#!/usr/bin/env bash
# The perf binaries as programs: rows, exit codes, reports, and their answers to impossible requests.
# Usage: perf_test.sh FOLDER_OF_THE_BINARIES
set -euo pipefail
perf=$1
source "$(dirname "${BASH_SOURCE[0]}")/perf_expect.sh"

small=(-b 64 -e 4K -f 8 -n 2 -w 1)
for binary in all_reduce all_gather reduce_scatter broadcast reduce gather scatter alltoall alltoallv hypercube; do
  expect 0 'Out of bounds values : 0 OK' "$perf/${binary}_perf" -t 4 "${small[@]}"
done
# Uses processes: in place it sends from memory that it receives into, which is a race among threads.
expect 0 'Out of bounds values : 0 OK' "$perf/sendrecv_perf" -P 4 "${small[@]}"
# In place, send and receive has times but no right result, and all-to-all with counts has neither.
number='[0-9.e+]+'
expect 0 "^ +64 +16 +float +sum +-1 +$number +$number +$number +0 +$number +$number +$number +N/A$" "$perf/sendrecv_perf" -P 3 "${small[@]}"
expect 0 "^ +64 +.* +none +-1 +$number +$number +$number +0 +N/A +N/A +N/A +N/A$" "$perf/alltoallv_perf" -t 2 "${small[@]}"
expect 0 'hypercube has 1, 2, 4, 8, ... ranks, not 3' "$perf/hypercube_perf" -t 3 "${small[@]}"
expect 0 'Out of bounds values : 0 OK' "$perf/hypercube_perf" -P 2 -g 2 -m 2 "${small[@]}"
expect 0 'Out of bounds values : 0 OK' "$perf/gather_perf" -t 3 -r all -N 2 -z 1 "${small[@]}"

for kind in 1 2; do
  expect 0 'Out of bounds values : 0 OK' "$perf/all_reduce_perf" -P 2 -t 2 -R $kind -u 1 "${small[@]}"
done
expect 255 "0 to 2, not '3'" "$perf/all_reduce_perf" -t 2 -R 3

# The costs of the communicators, for every way to make them.
cost='^# Communicator: made in [0-9.]+ ms \(slowest rank\), idle it holds [1-9][0-9]* bytes'
for ranks in "-P 2" "-t 2" "-g 2" "-t 2 -p 1"; do
  # shellcheck disable=SC2086 # several words
  expect 0 "$cost" "$perf/all_reduce_perf" $ranks "${small[@]}"
done

# Reports are never overwritten, are complete, have truth values and do not contain the environment.
expect 0 'i_p99' "$perf/all_reduce_perf" -P 2 -I 1 -K 1 -J "$folder/a.json" "${small[@]}"
expect 0 'i_p99' "$perf/alltoallv_perf" -t 2 -I 1 -J "$folder/a.json" "${small[@]}"
[[ -s $folder/a.json && -s $folder/a.json.0 ]] || fail "a report is missing"
if command -v python3 >/dev/null; then
  python3 - "$folder/a.json" "$folder/a.json.0" <<'PYTHON' || fail "a report is wrong"
import json, sys
first, second = (json.load(open(path)) for path in sys.argv[1:])
assert first["version"] == 3 and first["out_of_bounds"] == {"count": 0, "okay": True}, first
assert first["config"]["per_iter_timing"] is True and len(first["config"]["devices"]) == 2
assert first["config"]["comm_init_ms"] > 0 and first["config"]["comm_memory_bytes"] > 0
assert [row["size"] for row in first["results"]] == [64, 512, 4096]
tails = first["results"][0]["in_place_per_iter"]
assert tails["skipped_iterations"] == 1 and len(tails["times_us"]) == 2
assert len(tails["per_process_max_times_us"]) == 2
assert first["args"][-1] != "0" and not any(entry.startswith("PATH=") for entry in first["env"])
assert second["results"][0]["in_place"] is None
PYTHON
fi
expect 255 "'/nonexistent/x.json' cannot be written" "$perf/all_reduce_perf" -P 2 -J /nonexistent/x.json "${small[@]}"
expect 255 "'/nonexistent/x.json' cannot be written" "$perf/all_reduce_perf" -t 2 -J /nonexistent/x.json "${small[@]}"
expect 255 'ends with .json' "$perf/all_reduce_perf" -J report.txt

# A report is complete however the run ends. (Background jobs of a script ignore SIGINT unless that is changed.)
ended_by() {
  local signal=$1 report=$2 code=0
  shift 2
  env --default-signal=INT,TERM "$@" -N 0 -J "$report" >"$folder/out" 2>"$folder/err" &
  program=$!
  until (($(grep -cE '^ +[0-9]+ ' "$folder/out") > 1)); do
    read -rt 0.01 <> <(:) || true
    kill -0 "$program" || { cat "$folder/out" "$folder/err"; fail "no rows of a measurement without an end"; }
  done
  kill "-$signal" "$program"
  wait "$program" || code=$?
  program=
  ((code == 128 + $(kill -l "$signal"))) || fail "SIG$signal ended $1 with $code"
  grep -q '"size":4,' "$report" || { cat "$report"; fail "the report of a run that SIG$signal ended has no rows"; }
  grep -q '"errors":\["the run has not ended"\]' "$report" || { cat "$report"; fail "the report does not say that the run had no end"; }
  [[ ! -x "$(command -v python3)" ]] || python3 -m json.tool "$report" >"$folder/out" || fail "SIG$signal left half a report"
}
ended_by INT "$folder/int.json" "$perf/all_reduce_perf" -t 2 -b 4 -e 4
ended_by TERM "$folder/term.json" "$perf/all_reduce_perf" -P 2 -b 4 -e 4
ended_by KILL "$folder/kill.json" "$perf/kernel_perf" -b 4 -e 4 -n 1

# Pre-multiplied sums of all types, for which the added values differ from the contributions.
for name in all_reduce reduce_scatter reduce; do
  expect 0 'Out of bounds values : 0 OK' "$perf/${name}_perf" -t 3 -b 256 -e 64K -f 16 -n 1 -d all -o mulsum
  [[ $(grep -cE ' mulsum ' "$folder/out") == 36 ]] || fail "${name}_perf left something out of -o mulsum"
done

# The kernels with every type and operator.
expect 0 'Out of bounds values : 0 OK' "$perf/kernel_perf" -b 1K -e 4K -f 4 -n 2 -d all -o all --sources 1,2,5 -J "$folder/k.json"
[[ $(grep -cE '^ +1024 ' "$folder/out") == 180 ]] || fail "kernel_perf left something out"
[[ -s $folder/k.json ]] || fail "kernel_perf wrote no report"
expect 0 'all right' "$perf/top_k_perf" -b 4 -e 256K -f 64 -n 1
for type in half bfloat16 double; do
  expect 0 'all right' "$perf/top_k_perf" -b 8 -e 64K -f 64 -n 1 -d "$type"
done
expect 255 'half, bfloat16 or double' "$perf/top_k_perf" -d int32
expect 255 'bytes|size' "$perf/top_k_perf" -b much
expect 255 'sources takes numbers' "$perf/kernel_perf" --sources 0
expect 255 'cannot be written' "$perf/kernel_perf" -J /nonexistent/k.json
expect 255 'one thread' "$perf/kernel_perf" -t 2

# The user's algorithm applies to the measured collective, not to the collectives that the program itself needs.
expect 0 'Out of bounds values : 0 OK' env TRESTLE_TRANSPORT=tcp TRESTLE_ALGO=tree "$perf/all_reduce_perf" -P 3 "${small[@]}"
expect 0 'Out of bounds values : 0 OK' env TRESTLE_ALGO=chain "$perf/broadcast_perf" -t 2 -g 2 -z 1 "${small[@]}"

# Variables in both spellings.
expect 7 'Avg bus bandwidth .* FAILED' env TRESTLE_TESTS_MIN_BW=1e9 "$perf/all_reduce_perf" -P 2 "${small[@]}"
expect 255 "a number of GB/s, not 'fast'" env TRESTLE_TESTS_MIN_BW=fast "$perf/all_reduce_perf" -P 2 "${small[@]}"
# Groups that measure at the same time: two processes of 4 each, with their own rank numbers.
expect 0 'Rank  3 Group  1' env NCCL_TESTS_SPLIT='MOD 2' "$perf/all_gather_perf" -P 4 -r 1 "${small[@]}"
grep -q '        4096           512 ' "$folder/out" || fail "a group of two ranks does not have two blocks"
expect 0 'Out of bounds values : 0 OK' env TRESTLE_TESTS_SPLIT_MASK=0x2 "$perf/broadcast_perf" -P 3 -t 2 -g 2 "${small[@]}"
expect 255 'there are 2 ranks' env NCCL_TESTS_SPLIT='DIV 2' "$perf/broadcast_perf" -P 4 -r 2
expect 255 'NCCL_TESTS_SPLIT is AND' env NCCL_TESTS_SPLIT='by two' "$perf/broadcast_perf" -P 4
printf '0 64\n32 16\n' >"$folder/matrix"
matrix=(env NCCL_TESTS_ALLTOALLV_MATRIX_FILE="$folder/matrix")
expect 0 'Out of bounds values : 0 OK' "${matrix[@]}" "$perf/alltoallv_perf" -P 2 -b 256 -e 256 -n 2
expect 0 'traffic of rank 0: sends 64 bytes, receives 32' "${matrix[@]}" NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY=1 "$perf/alltoallv_perf" -t 2 -b 256 -e 256 -n 2
expect 255 'must be the same' "${matrix[@]}" "$perf/alltoallv_perf" -t 2 "${small[@]}"
expect 255 'for 2 ranks, there are 3' "${matrix[@]}" "$perf/alltoallv_perf" -t 3 -b 256 -e 256
expect 255 'more than -e' "${matrix[@]}" "$perf/alltoallv_perf" -t 2 -b 64 -e 64
expect 255 '0 to 1' env NCCL_TESTS_ALLTOALLV_SPREAD=2 "$perf/alltoallv_perf" -t 2

# A rank stops. -T ends the wait of the others, and then the program and the stopped rank.
"$perf/all_reduce_perf" -P 2 -T 1 -b 4 -e 4 -N 0 >"$folder/out" 2>"$folder/err" &
program=$!
until grep -qE '^ +4 ' "$folder/out"; do kill -0 "$program" || fail "no row of a measurement without an end"; done
stopped=$(awk '$2 == "Rank" && $3 == 1 { print $7 }' "$folder/out")
kill -STOP "$stopped"
code=0
wait "$program" || code=$?
program=
[[ $code == 4 ]] || { cat "$folder/err"; fail "a stopped rank led to $code, not 4"; }
grep -q "timeout: .*rank 1 .*pid $stopped" "$folder/out" || { cat "$folder/out"; fail "nobody named the stopped rank"; }
if kill -0 "$stopped" 2>/dev/null; then
  kill -KILL "$stopped"
  fail "the stopped rank is still there"
fi

# Flags that make sense on a GPU only get a sentence. Flags that make no sense get the usage.
expect 0 'CUDA graphs' "$perf/all_reduce_perf" -t 2 -G 1 "${small[@]}"
expect 255 'no flag -Q' "$perf/all_reduce_perf" -Q
expect 255 'there are 2 ranks' "$perf/broadcast_perf" -t 2 -r 2
echo fine
