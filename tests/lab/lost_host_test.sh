#!/usr/bin/env bash
# A lost host: its links go down in the middle of a job. That ends no connection, so only the heartbeat can detect it.
# Both ranks must fail with a sentence that names the other's host. Usage: lost_host_test.sh SOURCE_DIR BUILD_DIR. Exits
# with 77 and a reason if no lab is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# expect RANK LOST: checks the output of rank RANK, which has ended.
expect() {
  sed "s/^/rank $1: /" "$files/$1"
  grep -q "rank $2 (host lab-h$2, pid [0-9]*) is lost" "$files/$1" || fail "rank $1 does not name the lost host lab-h$2"
  grep -q "TRESTLE_HEARTBEAT" "$files/$1" || fail "rank $1 does not say what told it"
}

if [[ "${3:-}" == --inside ]]; then
  # The deadline of the operations is longer than the test's own, so only the heartbeat can end them.
  export TRESTLE_HEARTBEAT=500ms TRESTLE_TIMEOUT=1h
  for rank in 0 1; do
    "$lab" exec "$rank" -- timeout 120 "$LAB_BUILD/perf/all_reduce_perf" -b 1M -e 1M -n 1000000 -w 0 -c 0 >"$files/$rank" 2>&1 &
    jobs[rank]=$!
  done
  until (($("$lab" sent) > 20000000)); do  # the job is running
    for rank in 0 1; do kill -0 "${jobs[rank]}" 2>/dev/null || fail "rank $rank ended too early: $(cat "$files/$rank")"; done
  done
  for device in ctl d1; do "$lab" exec 1 -- ip link set "$device" down; done
  for rank in 0 1; do
    code=0
    wait "${jobs[rank]}" || code=$?
    ((code != 124)) || fail "rank $rank waits still: $(cat "$files/$rank")"
    ((code != 0)) || fail "rank $rank did not fail"
  done
  expect 0 1
  expect 1 0
  exit 0
fi

require_lab
inside 2@100
