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

"$trestle" run -n 4 -- "$program" --csv "$folder/losses.csv" --svg "$folder/losses.svg" >"$folder/out"
says 'dense +loss 0\.[0-9]+, \+0\.000 % to dense$'
says 'wfbp +loss 0\.[0-9]+, [+-]0\.0[0-9]+ % to dense$'
says 'split_optimal:shared +loss 0\.[0-9]+, [+-]0\.0[0-9]+ % to dense; bit-equal to plain all-reduces of the same [1-6] buffers$'
# Its plan makes two updates of three steps; what is pending at the end is one more.
says 'deft:1K +loss 0\.[0-9]+, [+-][01]\.[0-9]+ % to dense; 40[01] updates, of gradients up to [1-3] steps old$'
says 'ar_topk:0\.1 +loss 0\.[0-9]+, [+-][01]\.[0-9]+ % to dense; 126 of 1251 elements travel in each step$'

[[ $(head -n 1 "$folder/losses.csv") == "step,dense,wfbp,split_optimal:shared,deft:1K,ar_topk:0.1" ]] || fail "the CSV's first row"
[[ $(wc -l <"$folder/losses.csv") == 32 ]] || fail "the CSV has not 31 rows behind the first one"
awk -F, 'NR > 1 && (NF != 6 || $1 != 20 * (NR - 2)) { exit 1 }' "$folder/losses.csv" || fail "the CSV's columns"
# The curves begin together and end within 2 % of the dense loss.
awk -F, 'NR == 2 { for (i = 3; i <= 6; ++i) if ($i != $2) exit 1 }
         END { for (i = 3; i <= 6; ++i) if ($i > 1.02 * $2 || $i < 0.98 * $2) exit 1 }' "$folder/losses.csv" || fail "the CSV's losses"

[[ $(grep -c '<polyline' "$folder/losses.svg") == 5 ]] || fail "the picture has not five curves"
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
echo fine
