#!/usr/bin/env bash
# Rails of a running lab (scripts/lab rail): each command does what it says, to that rail and host alone, judged by what
# neighbours answer and by counted bytes. Usage: rail_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab
# is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# received [RANK] DEVICE: bytes that came in at a device of the rank's host; without RANK of the switch.
received() {
  local device=${*: -1} at=()
  (($# == 1)) || at=("$lab" exec "$1" --)
  "${at[@]}" awk -v device="$device:" '$1 == device { print $2 }' /proc/net/dev
}

# resolves RANK DEVICE ADDRESS: whether a neighbour answers. The kernel decides, after it has asked three times.
resolves() {
  "$lab" exec "$1" -- bash -c '
    ip neigh flush dev "$0" to "$1" nud all
    echo >"/dev/udp/$1/9" || exit 2
    until [[ "$(ip neigh show dev "$0" to "$1")" =~ (REACHABLE|STALE|DELAY|PROBE|FAILED) ]]; do :; done
    [[ "${BASH_REMATCH[1]}" != FAILED ]]' "$2" "$3" 2>/dev/null
}

# Host 1 sends host 2 50000 bytes over rail 2. Waits until the switch has them, and sets `came` to what host 2 has got.
send_over_rail_2() {
  local at_switch at_host
  at_switch=$(received h0d1r2)
  at_host=$(received 1 d1r2)
  "$lab" exec 0 -- bash -c 'for ((i = 0; i < 50; ++i)); do printf "%1000s" x >/dev/udp/10.77.21.2/9; done'
  until (($(received h0d1r2) - at_switch >= 50000)); do :; done
  [[ "$1" == lost ]] || until (($(received 1 d1r2) - at_host >= 50000)); do :; done
  came=$(($(received 1 d1r2) - at_host))
}

# Sets first and second to the bytes that came over two rails while both got the same, until the first has carried 3 MB.
flood() {
  local flooder before_first before_second
  before_first=$(received 1 d1r1)
  before_second=$(received 1 d1r2)
  "$lab" exec 0 -- python3 -c '
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for link in out: link.setblocking(False)
while True:
    for link, address in zip(out, ("10.77.1.2", "10.77.21.2")):
        try: link.sendto(bytes(30000), (address, 9))
        except BlockingIOError: pass' &
  flooder=$!
  until (($(received 1 d1r1) - before_first > 3000000)); do kill -0 "$flooder" || fail "nobody sends"; done
  second=$(($(received 1 d1r2) - before_second))
  first=$(($(received 1 d1r1) - before_first))
  kill "$flooder"
  wait "$flooder" || true
}

# refused WHAT ARGUMENTS...: an error that says WHAT.
refused() {
  local said
  if said=$("$lab" rail "${@:2}" 2>&1); then fail "rail ${*:2} was accepted"; fi
  [[ "$said" == *"$1"* ]] || fail "rail ${*:2} says: $said"
}

# A link that has just come up may need longer than the kernel asks.
answers() {
  resolves "$@" || resolves "$@" || resolves "$@"
}

expect_both() {
  answers 0 d1r1 10.77.1.2 || fail "$1: rail 1 does not answer"
  answers 0 d1r2 10.77.21.2 || fail "$1: rail 2 does not answer"
}

down_and_up() {
  "$lab" rail 2 down
  for rank in 0 1; do
    "$lab" exec "$rank" -- ip -br link show dev d1r2 | grep -q ' DOWN ' || fail "down: host of rank $rank is up"
  done
  answers 0 d1r1 10.77.1.2 || fail "down: rail 1 does not answer either"
  if resolves 0 d1r2 10.77.21.2; then fail "down: rail 2 answers"; fi
  "$lab" rail 2 up
  expect_both up
  "$lab" rail 2 down 1 2
  "$lab" exec 0 -- ip -br link show dev d1r2 | grep -q ' UP ' || fail "down of host 2 is one of host 1 too"
  if resolves 0 d1r2 10.77.21.2; then fail "down: host 2 answers"; fi
  "$lab" rail 2 up 1 2
  expect_both "up of host 2"
}

drop_and_pass() {
  send_over_rail_2 arrives
  for host in 1 2; do
    "$lab" rail 2 drop 1 "$host"
    "$lab" exec "$((host - 1))" -- ip -br link show dev d1r2 | grep -q ' UP .*LOWER_UP' || fail "drop: host $host sees it"
    send_over_rail_2 lost
    ((came < 10000)) || fail "drop of host $host: $came bytes came"
    if resolves 0 d1r2 10.77.21.2; then fail "drop of host $host: it answers"; fi
    answers 0 d1r1 10.77.1.2 || fail "drop of host $host: rail 1 does not answer either"
    "$lab" rail 2 pass 1 "$host"
    expect_both "pass of host $host"
    send_over_rail_2 arrives
  done
  "$lab" rail 2 drop
  "$lab" rail 2 down
  "$lab" rail 2 up
  if resolves 0 d1r2 10.77.21.2; then fail "down and up end a drop"; fi
  "$lab" exec 0 -- "$lab" rail 2 pass  # on a host, as a rank would
  expect_both "pass on a host"
}

rates() {
  "$lab" rail 2 rate 2
  flood
  ((second * 3 < first)) || fail "rate: a tenth of the rate carried $second of $first bytes"
  "$lab" rail 2 rate 20
  flood
  ((second * 2 > first && second < first * 2)) || fail "rate: equal rails carried $first and $second bytes"
  "$lab" rail 2 rate 7 1 2
  for place in "h0d1r2 20" "h1d1r2 7"; do
    tc qdisc show dev "${place% *}" | grep -q " rate ${place#* }Mbit" || fail "rate: the switch's $place"
  done
  "$lab" exec 1 -- tc qdisc show dev d1r2 | grep -q " rate 7Mbit" || fail "rate: host 2"
  "$lab" exec 0 -- tc qdisc show dev d1r2 | grep -q " rate 20Mbit" || fail "rate: host 1"
}

if [[ "${3:-}" == --inside ]]; then
  refused "'0' is no rail of dimension 1 of $LAB_SYSTEM; they count from 1 to 2" 0 down
  refused "'3' is no rail" 3 down
  refused "'x' is no rail" x up
  refused "'cut' is nothing that can be done to a rail; there are: down up drop pass rate" 1 cut
  refused "'' is no rate" 1 rate
  refused "'0' is no rate" 1 rate 0
  refused "'1.5' is no rate" 1 rate 1.5
  refused "'2' is no dimension of $LAB_SYSTEM with links; there are: 1" 1 down 2
  refused "'0' is no host" 1 down 1 0
  refused "'3' is no host of $LAB_SYSTEM; they count from 1 to 2" 1 down 1 3
  refused "too much after 'drop'" 1 drop 1 1 1
  refused "scripts/lab rail K" 1
  expect_both "at first"
  down_and_up
  drop_and_pass
  rates
  exit 0
fi
if [[ "${3:-}" == --dimensions ]]; then
  refused "several dimensions with links (2 3): please say which" 1 down
  refused "'1' is no dimension of $LAB_SYSTEM with links; there are: 2 3" 1 down 1
  "$lab" rail 1 down 3 1
  "$lab" exec 0 -- ip -br link show dev d3 | grep -q ' DOWN ' || fail "dimension 3 is up"
  "$lab" exec 0 -- ip -br link show dev d2 | grep -q ' UP ' || fail "dimension 2 is down too"
  exit 0
fi

require_lab
command -v python3 >/dev/null || fail "what sends over both rails needs python3"
refused "this works inside a lab only" 1 down
inside 2@20+20
"$lab" inside 2x2x2@shm,100,50 -- "$0" "$source_dir" "$LAB_BUILD" --dimensions
