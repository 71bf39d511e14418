#!/usr/bin/env bash
# Training steps over two unequal rails: every gradient is right under every kind of policy. Times are not judged.
# Usage: train_step_lab_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is possible.
set -euo pipefail
source_dir=$1
export LAB_BUILD=$2
lab=$source_dir/scripts/lab

if ((EUID != 0)); then
  echo "train_step_lab_test: skipped: network namespaces and shaping need root"
  exit 77
fi
if ! "$lab" run 2@100 -- true; then
  echo "train_step_lab_test: skipped: there can be no lab here"
  exit 77
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
policies=(wfbp threshold:100K dear:50K:eager dear:50K:lookahead split_optimal:shared split_optimal:free priority:20K auto)
code=0
"$lab" run 4@200+100 -- "$LAB_BUILD/perf/train_step_perf" --scale-bytes 0.005 --scale-time 0.1 --cost 1e-3,5e-8 --check 1 --rounds 2 \
  --steps 2 --policy "$(IFS=,; echo "${policies[*]}")" >"$out" 2>&1 || code=$?
((code == 0)) || { cat "$out"; echo "train_step_lab_test: it ended with $code" >&2; exit 1; }
grep -q '^\[0\] # Out of bounds values : 0 OK$' "$out" || { cat "$out"; echo "train_step_lab_test: gradients are wrong" >&2; exit 1; }
for policy in "${policies[@]}"; do
  grep -qE "^\[0\]   $policy +([0-9.]+ +)+0( |$)" "$out" || { cat "$out"; echo "train_step_lab_test: no row of $policy" >&2; exit 1; }
done
echo "train_step_lab_test: passed"
