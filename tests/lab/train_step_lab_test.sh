#!/usr/bin/env bash
# Training steps over two unequal rails: every gradient is right under every kind of policy. Times are not judged.
# Usage: train_step_lab_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

require_lab
out=$files/out
policies=(wfbp threshold:100K dear:50K:eager dear:50K:lookahead split_optimal:shared split_optimal:free priority:20K auto)
code=0
"$lab" run 4@200+100 -- "$LAB_BUILD/perf/train_step_perf" --scale-bytes 0.005 --scale-time 0.1 --cost 1e-3,5e-8 --check 1 --rounds 2 \
  --steps 2 --policy "$(IFS=,; echo "${policies[*]}")" >"$out" 2>&1 || code=$?
((code == 0)) || fail "it ended with $code"
grep -q '^\[0\] # Out of bounds values : 0 OK$' "$out" || fail "gradients are wrong"
for policy in "${policies[@]}"; do
  grep -qE "^\[0\]   $policy +([0-9.]+ +)+0( |$)" "$out" || fail "no row of $policy"
done
echo "train_step_lab_test: passed"
