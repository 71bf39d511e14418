#!/usr/bin/env bash
# docs/examples/train_mlp.c on four processes: its line for each policy, its CSV and its picture.
# Usage: train_mlp_test.sh TRESTLE PROGRAM
set -euo pipefail
trestle=$1 program=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "FAILED: $*" >&2
  cat "$folder/out" >&2
  exit 1
}
# says PATTERN: a line of rank 0 matches.
says() {
  grep -qE -- "^\[0\] $1" "$folder/out" || fail "no line like '$1'"
}

"$trestle" run -n 4 -- "$program" --csv "$folder/losses.csv" --plot "$folder/losses.svg" >"$folder/out"
says 'dense +loss 0\.[0-9]+, \+0\.000 % to dense$'
says 'wfbp +loss 0\.[0-9]+, [+-]0\.0[0-9]+ % to dense$'
says 'split_optimal:shared +loss 0\.[0-9]+, [+-]0\.0[0-9]+ % to dense; bit-equal to plain all-reduces of the same [1-6] buffers$'
# Its plan makes two updates of three steps; what is pending at the end is one more.
says 'deft:1K +loss 0\.[0-9]+, [+-][01]\.[0-9]+ % to dense; 40[01] updates, of gradients up to [1-3] steps old$'
says 'topk:0\.1 +loss 0\.[0-9]+, [+-][01]\.[0-9]+ % to dense; 129 of 1251 elements travel in each step$'
says 'ar_topk:0\.1 +loss 0\.[0-9]+, [+-][01]\.[0-9]+ % to dense; 126 of 1251 elements travel in each step$'

[[ $(head -n 1 "$folder/losses.csv") == "step,dense,wfbp,split_optimal:shared,deft:1K,topk:0.1,ar_topk:0.1" ]] || fail "the CSV's first row"
[[ $(wc -l <"$folder/losses.csv") == 32 ]] || fail "the CSV has not 31 rows behind the first one"
awk -F, 'NR > 1 && (NF != 7 || $1 != 20 * (NR - 2)) { exit 1 }' "$folder/losses.csv" || fail "the CSV's columns"
# The curves begin together and end within 2 % of the dense loss.
awk -F, 'NR == 2 { for (i = 3; i <= 7; ++i) if ($i != $2) exit 1 }
         END { for (i = 3; i <= 7; ++i) if ($i > 1.02 * $2 || $i < 0.98 * $2) exit 1 }' "$folder/losses.csv" || fail "the CSV's losses"

[[ $(grep -c '<polyline' "$folder/losses.svg") == 6 ]] || fail "the picture has not six curves"
if command -v python3 >/dev/null; then
  python3 - "$folder/losses.svg" <<'PYTHON' || fail "the picture is wrong"
import sys
import xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
width, height = float(root.get("width")), float(root.get("height"))
for curve in root.iter("{http://www.w3.org/2000/svg}polyline"):
    points = [tuple(map(float, point.split(","))) for point in curve.get("points").split()]
    assert len(points) == 31 and all(0 <= x <= width and 0 <= y <= height for x, y in points)
PYTHON
fi

# Another policy in the place of topk:0.1, and words that are refused with a sentence.
"$trestle" run -n 2 -- "$program" --policy topk:0.5 >"$folder/out"
says 'topk:0\.5 +loss 0\.[0-9]+, .* to dense; 62[0-9] of 1251 elements travel in each step$'
# refused SENTENCE WORDS...
refused() {
  local sentence=$1
  shift
  if "$trestle" run -n 2 -- "$program" "$@" >"$folder/out" 2>&1; then fail "'$*' was not refused"; fi
  grep -qF -- "$sentence" "$folder/out" || fail "'$*' has no sentence '$sentence'"
}
refused "'fastest' is not a policy; there are naive" --policy fastest
refused 'is neither hidden nor a ratio above 0 and at most 1' --policy topk:2
refused 'train_mlp: --rate: is no option; there are --csv, --plot and --policy' --rate 1
refused 'train_mlp: --csv: needs a value' --csv
echo fine
