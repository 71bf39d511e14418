#!/usr/bin/env bash
# Over IPv6 ranks find all rails with nothing told: both carry data, and the control mesh moves between them. On hosts
# with both families, and on hosts without IPv4. Usage: ipv6_rails_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a
# reason if no lab is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# The rails of host $1 get IPv6 addresses, and nothing but the rails leads to the other host.
to_ipv6() {
  "$lab" exec "$1" -- bash -euc '
    for knob in /proc/sys/net/ipv6/conf/{all,default,d1r1,d1r2}; do echo 0 >"$knob/disable_ipv6"; done
    for rail in 1 2; do ip -6 addr add "fd77:$rail::$(($0 + 1))/64" dev "d1r$rail" nodad; done
    ip link set ctl down' "$1"
}

# start ARGUMENTS...: a job whose ranks meet over the first rail.
start() {
  local rank
  for rank in 0 1; do
    "$lab" exec "$rank" -- env MASTER_ADDR=fd77:1::1 TRESTLE_SOCKET_IFNAME= TRESTLE_TOPO_FILE= \
      "$LAB_BUILD/perf/all_reduce_perf" -b 4M -e 4M -w 1 "$@" >"$files/out.$rank" 2>&1 &
    jobs[rank]=$!
  done
  job=${jobs[0]}
}

finish() {
  local rank
  for rank in 0 1; do wait "${jobs[rank]}" || fail "rank $rank failed"; done
  grep -q '# Out of bounds values : 0 OK' "$files/out.0" || fail "a sum is wrong"
}

# Each rank has told of both rails, and both have carried data.
check() {
  local rank rail
  for rank in 0 1; do
    for rail in 1 2; do
      grep -q "tcp: rail d1r$rail at \[fd77:$rail::$((rank + 1))\]:[0-9]* on fd77:$rail::/64" "$files/out.$rank" ||
        fail "$1: rank $rank did not find rail d1r$rail"
      awk -v rank="$rank" -v rail="d1r$rail" '$1 == "#" && $2 == rank && $4 == rail && $6 > 1 { ++rows }
        END { exit rows != 1 }' "$files/out.0" || fail "$1: rail d1r$rail of rank $rank carried nothing"
    done
  done
}

if [[ "${3:-}" == --inside ]]; then
  export TRESTLE_RAIL_TIMEOUT=500ms TRESTLE_DEBUG=INFO TRESTLE_DEBUG_SUBSYS=NET,BOOTSTRAP
  jobs=()
  for rank in 0 1; do to_ipv6 "$rank"; done
  start -n 2 -c 1 -X 2
  finish
  check "both families"
  for rank in 0 1; do "$lab" exec "$rank" -- ip -4 addr flush scope global; done
  start -n 20 -N 6 -c 1 -X 2
  until_said '^ *4194304' 1
  "$lab" rail 1 drop
  # A rank has two ends of links with its only peer.
  until_said 'control: connection with rank .* moved from d1r1 to d1r2' 4
  "$lab" rail 1 pass
  until_said 'rail d1r1 .* is back' 2
  finish
  check "IPv6 alone"
  exit 0
fi

if [[ ! -e /proc/sys/net/ipv6 ]]; then
  echo "ipv6_rails_test: skipped: this kernel has no IPv6"
  exit 77
fi
require_lab
inside 2@200+100
echo "ipv6_rails_test: passed"
