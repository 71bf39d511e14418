#!/usr/bin/env bash
# Rails that are set down, lose everything silently, and are healed, one after the other, while a job reduces and verifies
# every element. Nothing is wrong, no call fails, and the job never stands still. A cut is chosen by seed: which rail,
# how, of one host or of all, and after how many bytes. Usage: cuts_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a
# reason if no lab is possible. LAB_CUTS (3): number of cuts, each during at least 10 verified all-reduces. LAB_SEED (1)
# chooses other ones.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"
cuts=${LAB_CUTS:-3}
verified_per_row=20  # -c 10, out of place and in place
patience=60          # seconds without a line of the job: it stands still

fail() {
  echo "cuts_test: seed $seed, cut $cut ($what): $*" >&2
  tail -n 40 "$files/out" | sed 's/^/  /' >&2
  exit 1
}

# Takes the next line of the job into account.
next_line() {
  local line fields
  IFS= read -r -t "$patience" line <&3 || fail "the job has ended, or said nothing for $patience s"
  printf '%s\n' "$line" >>"$files/out"
  if [[ "$line" =~ ^\[0\]\ +1048576\  ]]; then
    read -ra fields <<<"$line"
    [[ "${fields[9]:-} ${fields[13]:-}" == "0 0" ]] || fail "a sum is wrong: $line"
    ((++rows))
    return
  fi
  case "$line" in
    *'the other rails go on'*) ((++lost)) ;;
    *' is back (it was lost:'*) ((++back)) ;;
    *'Test failure'* | *' ERROR '*) fail "the job fails: $line" ;;
  esac
}

# A row sends about 130 MB, so a cut falls anywhere into one.
wait_for_bytes() {
  local first deadline=$((SECONDS + patience))
  first=$("$lab" sent)
  until (($("$lab" sent) - first >= $1)); do ((SECONDS < deadline)) || fail "the job sends nothing more"; done
}

# One cut, until all connections are back and a whole row was reduced without another loss.
cut_once() {
  local rail=$((1 + RANDOM % 2)) verb heal at=() first begin
  case $((RANDOM % 2)) in
    0) verb=down heal=up ;;
    *) verb=drop heal=pass ;;
  esac
  ((RANDOM % 2 == 0)) || at=(1 $((1 + RANDOM % 4)))
  what="rail $rail $verb ${at[*]}"
  wait_for_bytes $((RANDOM * 4000))
  first=$lost
  "$lab" rail "$rail" "$verb" "${at[@]}"
  until ((lost > first)); do next_line; done
  "$lab" rail "$rail" "$heal" "${at[@]}"
  while :; do
    until ((back == lost)); do next_line; done
    first=$lost
    begin=$rows
    until ((rows >= begin + 2)); do next_line; done
    ((lost != first || back != lost)) || return 0
  done
}

if [[ "${3:-}" == --inside ]]; then
  seed=${LAB_SEED:-1} cut=0 what='before the first' lost=0 back=0 rows=0
  RANDOM=$seed
  # Without an interface in the topology file the rails are those of TRESTLE_RAILS.
  echo '{"dimensions": [{"size": 4, "kind": "switch", "transport": "tcp"}]}' >"$files/topology"
  export TRESTLE_TOPO_FILE=$files/topology TRESTLE_RAILS=d1r1,d1r2 TRESTLE_RAIL_TIMEOUT=300ms TRESTLE_DEBUG=WARN
  mkfifo "$files/lines"
  : >"$files/out"
  "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 1M -e 1M -d int32 -w 0 -n 1 -c 10 -N 0 >"$files/lines" 2>&1 &
  job=$!
  trap 'kill -TERM "$job" 2>/dev/null || true' EXIT
  exec 3<"$files/lines"
  until ((rows > 0)); do next_line; done
  for ((cut = 1; cut <= cuts; ++cut)); do cut_once; done
  until ((rows * verified_per_row >= cuts * 10)); do next_line; done
  kill -TERM "$job"
  trap - EXIT
  cat <&3 >/dev/null
  wait "$job" || true
  echo "cuts_test: seed $seed: $cuts cuts, $lost connections lost and $back healed, $((rows * verified_per_row)) all-reduces verified"
  exit 0
fi

require_lab
inside 4@200+100 1700
echo "cuts_test: passed"
