#!/usr/bin/env bash
# A job over two unequal rails: both carry data as the lab's topology file tells them, and with nothing told but their
# names. While one is set down, loses everything silently, and is healed, every sum is right. What the job tells of its
# rails agrees with that. Usage: rails_job_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# row RANK RAIL FIELD: a field of the row that -X 2 prints, counted from the rank's number.
row() {
  awk -v rank="$1" -v rail="$2" -v field="$3" '$2 == "#" && $3 == rank && $5 == rail { print $(field + 2) }' "$files/out"
}

check_rows() {
  local rank rail
  for rank in 0 1; do
    for rail in d1r1 d1r2; do
      [[ "$(row $rank $rail 2)" == $((1 - rank)) ]] || fail "there is not one row of rail $rail of rank $rank"
      awk -v sent="$(row $rank $rail 5)" 'BEGIN { exit !(sent > 1) }' || fail "rail $rail of rank $rank carried nothing"
    done
    (($(row $rank d1r2 10) >= 2)) || fail "rail d1r2 of rank $rank was lost '$(row $rank d1r2 10)' times"
    [[ "$(row $rank d1r1 4)" == up ]] || fail "rail d1r1 of rank $rank is '$(row $rank d1r1 4)'"
  done
}

# The rails in a report, and as lines of the log when the communicator is destroyed.
check_report() {
  TRESTLE_DEBUG=INFO "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 4M -e 4M -w 1 -n 2 -X 1 -J "$files/report.json" \
    >"$files/out" 2>&1 || fail "a job without faults failed"
  python3 - "$files/report.json" <<'END' || fail "the report's rails are wrong: $(cat "$files/report.json")"
import json, sys
rails = json.load(open(sys.argv[1]))["rails"]
assert [(r["rank"], r["peer"], r["rail"]) for r in rails] == [(0, 1, "d1r1"), (0, 1, "d1r2")]
assert all(r["sent_bytes"] >= r["acknowledged_bytes"] > 0 and r["received_bytes"] > 0 for r in rails)
assert 99.8 < sum(r["share_pct"] for r in rails) < 100.2
END
  for rail in d1r1 d1r2; do
    (($(grep -c "rail $rail: .* sent, .* %, [0-9]* connections* lost" "$files/out") == 2)) || fail "the log does not tell of rail $rail"
  done
}

if [[ "${3:-}" == --inside ]]; then
  # The lab's topology file names both rails, with their rates.
  "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 1M -e 1M -w 1 -n 2 -c 1 >"$files/out" 2>&1 || fail "the file's rails fail"
  while read -r name sent; do
    ((sent > 500000)) || fail "of the rails in the topology file $name carried only $sent bytes"
  done < <("$lab" counters)
  # Without a topology file the rails are those of TRESTLE_RAILS.
  export TRESTLE_TOPO_FILE='' TRESTLE_RAILS=d1r1,d1r2 TRESTLE_RAIL_TIMEOUT=500ms TRESTLE_DEBUG=WARN
  : >"$files/out"
  "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 4M -e 4M -w 2 -n 20 -N 8 -c 1 -X 2 >"$files/out" 2>&1 &
  job=$!
  until_said '^\[0\] *4194304' 1
  "$lab" rail 2 down
  until_said 'rail d1r2 .* is lost: .*; the other rails go on' 2
  "$lab" rail 2 up
  until_said 'rail d1r2 .* is back' 2
  "$lab" rail 2 drop
  until_said 'rail d1r2 .* is lost: nothing was acknowledged' 1
  "$lab" rail 2 pass
  until_said 'rail d1r2 .* is back' 4
  wait "$job" || fail "the job failed"
  grep -q '# Out of bounds values : 0 OK' "$files/out" || fail "a sum is wrong"
  read -r -a carried < <("$lab" counters | awk '{ print $2 }' | paste -sd ' ')
  ((${#carried[@]} == 2)) || fail "there are no two rails"
  # The second rail has half the rate and was away for a while.
  ((carried[1] > carried[0] / 8)) || fail "the second rail carried ${carried[1]} bytes, the first ${carried[0]}"
  check_rows
  check_report
  exit 0
fi

require_lab
command -v python3 >/dev/null || fail "reading a report needs python3"
inside 2@200+100
echo "rails_job_test: passed"
