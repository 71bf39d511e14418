#!/usr/bin/env bash
# A job over two unequal rails: both carry data as the lab's topology file tells them, and with nothing told but their
# names. While one is set down, loses everything silently, and is healed, every sum is right. Usage: rails_job_test.sh
# SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is possible.
set -euo pipefail
source_dir=$1
export LAB_BUILD=$2
lab=$source_dir/scripts/lab

fail() {
  echo "rails_job_test: $*" >&2
  sed 's/^/  /' "$files/out" >&2
  exit 1
}

# until_said TEXT COUNT: waits until the job has written lines with TEXT that often.
until_said() {
  until (($(grep -c "$1" "$files/out") >= $2)); do
    kill -0 "$job" 2>/dev/null || fail "the job ended before it said '$1' $2 times"
  done
}

if [[ "${3:-}" == --inside ]]; then
  files=$4
  # The lab's topology file names both rails, with their rates.
  "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 1M -e 1M -w 1 -n 2 -c 1 >"$files/out" 2>&1 || fail "the file's rails fail"
  while read -r name sent; do
    ((sent > 500000)) || fail "of the rails in the topology file $name carried only $sent bytes"
  done < <("$lab" counters)
  # Without a topology file the rails are those of TRESTLE_RAILS.
  export TRESTLE_TOPO_FILE='' TRESTLE_RAILS=d1r1,d1r2 TRESTLE_RAIL_TIMEOUT=500ms TRESTLE_DEBUG=WARN
  "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 4M -e 4M -w 2 -n 20 -N 8 -c 1 >"$files/out" 2>&1 &
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
  exit 0
fi

if ((EUID != 0)); then
  echo "rails_job_test: skipped: network namespaces and shaping need root"
  exit 77
fi
if ! "$lab" run 2@100 -- true; then
  echo "rails_job_test: skipped: there can be no lab here"
  exit 77
fi
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
"$lab" inside 2@200+100 -- "$0" "$1" "$2" --inside "$files"
echo "rails_job_test: passed"
