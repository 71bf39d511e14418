#!/usr/bin/env bash
# Hosts with an /etc/hosts of their own, in which a host's own name means loopback, as Debian's installer writes it:
# wherever ranks meet by such a name, they are told addresses at which they reach each other. A rank that others cannot
# reach is named. Usage: addresses_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# Two ranks on each host.
readonly kRanks=4
readonly own_etc='mount --bind "$0" /etc/hosts && exec "$@"'

# rank RANK VARIABLE=VALUE...: the program as that rank, with its host's /etc/hosts; its output goes to a file.
rank() {
  local rank=$1
  shift
  "$lab" exec "$rank" -- unshare --mount bash -euc "$own_etc" "$files/hosts.$((rank / 2))" \
    env -u MASTER_ADDR TRESTLE_SOCKET_IFNAME= TRESTLE_TOPO_FILE= TRESTLE_TIMEOUT=30s "$@" \
    "$LAB_BUILD/tests/sum_once" ${id:+"$id"} >"$files/out.$rank" 2>&1
}

# start VARIABLE=VALUE...: all ranks, each with what special[RANK] adds; codes[RANK] is how it ended. $meanwhile is done
# while they run.
start() {
  local rank jobs=()
  rm -f "$files"/out.* "$files/id"
  for ((rank = 0; rank < kRanks; ++rank)); do
    rank "$rank" "$@" ${special[rank]:+"${special[rank]}"} &
    jobs[rank]=$!
  done
  job=${jobs[0]}
  $meanwhile
  for ((rank = 0; rank < kRanks; ++rank)); do
    codes[rank]=0
    wait "${jobs[rank]}" || codes[rank]=$?
  done
}

# meet WHAT VARIABLE=VALUE...
meet() {
  local rank
  start "${@:2}"
  for ((rank = 0; rank < kRanks; ++rank)); do
    ((codes[rank] == 0)) || fail "$1: rank $rank failed"
    grep -q '^the sum is 10$' "$files/out.$rank" || fail "$1: the sum of rank $rank is wrong"
  done
}

name_it() {
  until_said "the host 'nodea' is not known" $kRanks
  printf '10.77.2.1 nodea\n' | tee -a "$files/hosts.1" >>"$files/hosts.0"
}

# Ranks have tried the wrong address.
correct_it() {
  until "$lab" exec 2 -- ip neigh show to 10.77.2.9 | grep -q 10.77.2.9; do
    kill -0 "$job" 2>/dev/null || fail "the job ended before it tried the wrong address"
  done
  printf '10.77.2.1 nodea\n' >"$files/hosts.1"
}

meet_in_every_way() {
  meet "MASTER_ADDR, $1" MASTER_ADDR=nodea
  rm -rf "$files/store"
  mkdir "$files/store"
  meet "TRESTLE_STORE, $1" TRESTLE_STORE="file:$files/store"
  id=$files/id
  meet "a unique id, $1"
  id=
}

# Host $1 gets what containers, virtual machines and networks of its own bring along, all of it before the interface over
# which it reaches the other host. priv0 is a rail, too, and leads nowhere.
surround() {
  "$lab" exec $((2 * $1)) -- bash -euc '
    for old in ctl d2; do ip addr flush dev "$old"; done
    echo 1 >/proc/sys/net/ipv4/conf/d2/arp_ignore # it would answer for net0
    plug() { ip addr add "$2" dev "$1"; ip link set "$1" up; }
    for bridge in virbr0 br-1f2e; do ip link add "$bridge" type bridge; done
    plug virbr0 192.168.122.1/24
    plug br-1f2e 172.18.0.1/16
    for pair in unplugged priv0 service; do ip link add "$pair" type veth peer name "peer-$pair"; done
    plug unplugged 10.5.0.1/24
    plug service 169.254.3.1/16
    ip link set peer-service up
    if ip tuntap add tun0 mode tun; then plug tun0 10.8.0.1/24; fi
    if (($0 == 0)); then plug priv0 10.6.0.1/24; fi
    ip link set peer-priv0 up
    ip link add link d2 name net0 type macvlan mode bridge
    plug net0 "10.9.0.$(($0 + 1))/24"' "$1"
}

# The address by which others reach host $1 moves to its loopback interface.
to_loopback() {
  "$lab" exec $((2 * $1)) -- bash -euc '
    ip link del priv0
    ip addr flush dev net0
    ip addr add "10.9.0.$(($0 + 1))/32" dev lo
    ip route add "10.9.0.$((2 - $0))/32" dev net0' "$1"
}

if [[ "${3:-}" == --inside ]]; then
  printf '127.0.0.1 localhost\n127.0.1.1 nodea\n' >"$files/hosts.0"
  printf '127.0.0.1 localhost\n10.77.2.1 nodea\n127.0.1.1 nodeb\n' >"$files/hosts.1"
  codes=() special=() id='' meanwhile=''
  meet MASTER_ADDR MASTER_ADDR=nodea
  meet TRESTLE_COMM_ID TRESTLE_COMM_ID=nodea:29510
  meet TRESTLE_RAILS MASTER_ADDR=nodea TRESTLE_RAILS='shm;d2'
  meet TRESTLE_SOCKET_IFNAME MASTER_ADDR=nodea TRESTLE_SOCKET_IFNAME=d2
  meet tcp MASTER_ADDR=nodea TRESTLE_TRANSPORT=tcp
  mkdir "$files/store"
  meet TRESTLE_STORE TRESTLE_STORE="file:$files/store"
  id=$files/id
  meet "a unique id"
  id=

  # What other hosts cannot reach is told to none of them. A rank may come when the others have heard it and left.
  special[0]=TRESTLE_SOCKET_IFNAME=lo
  start MASTER_ADDR=nodea TRESTLE_TIMEOUT=10s
  for hosts in 0 '[23]'; do
    grep -q 'rank 0 (host lab-h0, pid [0-9]*) can be reached from its own host only, at 127.0.0.1:' "$files/"out.$hosts ||
      fail "host of rank $hosts does not hear that rank 0 listens on loopback"
  done
  special[0]=TRESTLE_SOCKET_IFNAME=lo
  id=$files/id
  start TRESTLE_TIMEOUT=10s
  grep -q 'the unique id was made on another host, which can be reached from itself only, at 127.0.0.1:' \
    "$files"/out.[23] || fail "a rank of another host takes an id of loopback"
  special=() id=

  # Names that get an address, or another one, while ranks wait, and one that can never have any.
  for hosts in 0 1; do printf '127.0.0.1 localhost\n' >"$files/hosts.$hosts"; done
  meanwhile=name_it
  meet "a name that comes late" MASTER_ADDR=nodea
  printf '10.77.2.9 nodea\n' >"$files/hosts.1"
  meanwhile=correct_it
  meet "an address that nobody has" TRESTLE_COMM_ID=nodea:29520
  meanwhile=
  start MASTER_ADDR=node..a TRESTLE_TIMEOUT=10m
  (($(said "invalid argument: MASTER_ADDR: 'node..a' is not the name of a host: there is nothing between two dots") == kRanks)) ||
    fail "an empty label is not refused"
  start MASTER_ADDR=nosuch TRESTLE_TIMEOUT=1s
  (($(said "timeout: MASTER_ADDR: the host of 'nosuch:29500' was not found in time: ") == kRanks)) || fail "an unknown name is not said"

  printf '127.0.0.1 localhost\n127.0.1.1 nodea\n' >"$files/hosts.0"
  printf '127.0.0.1 localhost\n10.9.0.1 nodea\n' >"$files/hosts.1"
  for host in 0 1; do surround "$host"; done
  meet_in_every_way "beside other interfaces"
  for host in 0 1; do to_loopback "$host"; done
  meet_in_every_way "at addresses of loopback interfaces"
  exit 0
fi

require_lab
inside 2x2@shm,200
echo "addresses_test: passed"
