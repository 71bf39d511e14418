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

# start VARIABLE=VALUE...: all ranks, each with what special[RANK] adds; codes[RANK] is how it ended.
start() {
  local rank jobs=()
  rm -f "$files"/out.* "$files/id"
  for ((rank = 0; rank < kRanks; ++rank)); do
    rank "$rank" "$@" ${special[rank]:+"${special[rank]}"} &
    jobs[rank]=$!
  done
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

if [[ "${3:-}" == --inside ]]; then
  printf '127.0.0.1 localhost\n127.0.1.1 nodea\n' >"$files/hosts.0"
  printf '127.0.0.1 localhost\n10.77.2.1 nodea\n127.0.1.1 nodeb\n' >"$files/hosts.1"
  codes=() special=() id=
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

  # What other hosts cannot reach is told to none of them.
  special[0]=TRESTLE_SOCKET_IFNAME=lo
  start MASTER_ADDR=nodea
  for ((rank = 0; rank < kRanks; ++rank)); do
    grep -q 'rank 0 (host lab-h0, pid [0-9]*) can be reached from its own host only, at 127.0.0.1:' "$files/out.$rank" ||
      fail "rank $rank does not hear that rank 0 listens on loopback"
  done
  exit 0
fi

require_lab
inside 2x2@shm,200
echo "addresses_test: passed"
