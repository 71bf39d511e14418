#!/usr/bin/env bash
# The picture of each rail's goodput while one is cut and healed (scripts/lab_goodput): drawn from samples that are
# known, and in a lab from a job. Usage: goodput_plot_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab
# is possible; the picture of known samples needs none.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"
plot=$source_dir/scripts/lab_goodput
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT

# refused WHAT ARGUMENTS...: an error that says WHAT.
refused() {
  local said
  if said=$("$plot" "${@:2}" 2>&1); then fail "${*:2} was accepted"; fi
  [[ "$said" == *"$1"* ]] || fail "${*:2} says: $said"
}

if ! command -v python3 >/dev/null; then
  echo "goodput_plot_test: skipped: it needs python3"
  exit 77
fi
refused "the file for the picture is missing"
refused "'cut' is nothing that can happen to a rail here; there are down up drop pass tenth whole" --changes down,cut a.svg
refused "--seconds must be at least" --seconds 0 a.svg
refused "'3' is no rail of 2@200+100; they count from 1 to 2" --rail 3 a.svg
refused "has 2 dimensions with links" --system 2x2@10,20 a.svg
refused "cannot be drawn" --draw "$files/none" a.svg
# Two hosts, ten seconds: the first rail brings 10 MB/s to each, the second nothing from 4 s to 6 s.
python3 - "$files/known.json" <<'END'
import json, sys
samples = [[t / 10, [2_000_000 * t, 1_000_000 * (t - min(20, max(0, t - 40)))]] for t in range(101)]
json.dump({"system": "2@200+100", "hosts": 2, "rails": [{"name": "d1r1", "mbps": 200}, {"name": "d1r2", "mbps": 100}],
           "samples": samples, "events": [[4, "d1r2 down"], [6, "d1r2 <up>"]]}, open(sys.argv[1], "w"))
END
"$plot" --draw "$files/known.json" "$files/known.svg" >"$files/known.txt"
# Payload: 76.5 and 38.3 Mbit/s of 191.3 and 95.6. Without the second rail 76.5 of 191.3 remain; <up> is whole again.
expected="start 0.0 287 0.400 0.400|d1r2 down 4.0 191 0.400 0.400|d1r2 <up> 6.0 287 0.400 0.400"
said=$(tail -n +2 "$files/known.txt" | tr -s ' ' | sed 's/ $//' | paste -sd '|')
[[ "$said" == "$expected" ]] || fail "the table of known samples says $said"
python3 - "$files/known.svg" <<'END' || fail "the picture of known samples is wrong"
import sys, xml.etree.ElementTree as tree
lines = [e for e in tree.parse(sys.argv[1]).iter() if e.tag.endswith("polyline")]
long = [[tuple(map(float, p.split(","))) for p in e.get("points").split()] for e in lines]
total, first, second = [points for points in long if len(points) == 100]
bottom = max(y for _, y in second)
assert len({y for _, y in first}) == 1, "the first rail is steady"
assert sum(y == bottom for _, y in second) == 20, "two seconds without the second rail"
height = bottom - first[0][1]
assert abs((bottom - second[0][1]) * 2 - height) < 0.2 and abs((bottom - total[0][1]) - 1.5 * height) < 0.2
texts = {e.text for e in tree.parse(sys.argv[1]).iter() if e.tag.endswith("text")}
assert {"d1r2 down", "d1r2 <up>", "seconds"} <= texts
END

require_lab
"$plot" --system 2@100+50 --seconds 3 --changes down,up --samples "$files/job.json" "$files/job.svg"
python3 - "$files/job.json" "$files/job.svg" <<'END' || fail "the picture of a job is wrong: $(cat "$files/job.json")"
import json, sys, xml.etree.ElementTree as tree
tree.parse(sys.argv[2])
data = json.load(open(sys.argv[1]))
assert [what for _, what in data["events"]] == ["d1r2 down", "d1r2 up"]
down, up = [seconds for seconds, _ in data["events"]]
def brought(rail, begin, end):
    inside = [counts[rail] for seconds, counts in data["samples"] if begin <= seconds <= end]
    return inside[-1] - inside[0]
assert brought(1, 0, down) > 100_000, "the second rail carries before it is cut"
assert brought(1, (down + up) / 2, up) == 0, "a rail that is down brings nothing"
assert brought(1, up, 1e9) > 100_000, "it carries again"
assert brought(0, (down + up) / 2, up) > 100_000, "the first rail goes on"
END
echo "goodput_plot_test: passed"
