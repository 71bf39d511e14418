#!/usr/bin/env bash
# A table of starts: hosts whose names and interfaces are like those of real ones, times the ways in which ranks meet,
# with mpirun of Open MPI and MPICH where they are installed. Each cell starts unaided; the table is printed. Then what
# cannot start: a rank that others cannot reach is named, and a name that is none. Usage: addresses_test.sh SOURCE_DIR
# BUILD_DIR. Exits with 77 and a reason if no lab is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# Two ranks on each host.
readonly kRanks=4
readonly own_etc='mount --bind "$0" /etc/hosts && exec "$@"'

# What the lab says of its ranks, mpirun says as well.
without_lab=(env)
for variable in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT; do without_lab+=(-u "$variable"); done
without_lab+=(TRESTLE_SOCKET_IFNAME= TRESTLE_TOPO_FILE=)

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

# summed: all ranks have ended well, with the right sum.
summed() {
  local rank
  for ((rank = 0; rank < kRanks; ++rank)); do
    ((codes[rank] == 0)) || return 1
    grep -q '^the sum is 10$' "$files/out.$rank" || return 1
  done
}

# meet WHAT VARIABLE=VALUE...
meet() {
  start "${@:2}"
  summed || fail "$1: a rank failed"
}

# ---- mpirun, from host 0

# The launch agent: what mpirun would start on a host by ssh.
write_agent() {
  cat >"$files/agent" <<EOF
#!/bin/bash
while [[ \$1 == -* ]]; do shift; done
host=\${1##*lab-h}
shift
exec "$lab" exec \$((2 * host)) -- unshare --mount bash -euc '$own_etc' "$files/hosts.\$host" ${without_lab[*]} bash -c "\$*"
EOF
  chmod +x "$files/agent"
}

# by_openmpi PROGRAM, by_mpich PROGRAM: on both hosts, over the interface $way_out.
by_openmpi() {
  on_host_0 mpirun.openmpi --allow-run-as-root --mca plm_rsh_agent "$files/agent" --mca oob_tcp_if_include "$way_out" \
    -H lab-h0:2,lab-h1:2 -n $kRanks "$1"
}
by_mpich() {
  on_host_0 mpirun.mpich -launcher ssh -launcher-exec "$files/agent" -iface "$way_out" -hosts lab-h0,lab-h1 -ppn 2 \
    -n $kRanks "$1"
}
on_host_0() {
  "$lab" exec 0 -- unshare --mount bash -euc "$own_etc" "$files/hosts.0" timeout 60 "${without_lab[@]}" \
    TRESTLE_TIMEOUT=30s "$@" >"$files/out.0" 2>&1
}

# by_mpirun NAME: "starts", or why not.
by_mpirun() {
  rm -f "$files"/out.*
  if ! command -v "mpirun.$1" >/dev/null; then
    echo "not installed"
  elif ! "by_$1" true; then
    echo "its own daemons do not connect"
  elif "by_$1" "$LAB_BUILD/tests/sum_once" && (($(said '^the sum is 10$') == kRanks)); then
    echo starts
  else
    echo "does not start"
  fi
}

# ---- the table

readonly ways=(MASTER_ADDR TRESTLE_COMM_ID TRESTLE_STORE "unique id" openmpi mpich)

# by WAY: "starts", or why not.
by() {
  local variable
  id='' meanwhile=''
  case $1 in
    openmpi | mpich) by_mpirun "$1" && return ;;
    "unique id") variable=TRESTLE_DEBUG=WARN id=$files/id ;;
    TRESTLE_STORE) rm -rf "$files/store" && mkdir "$files/store" && variable=TRESTLE_STORE=file:$files/store ;;
    TRESTLE_COMM_ID) variable=TRESTLE_COMM_ID=nodea:29510 meanwhile=$name_comes ;;
    MASTER_ADDR) variable=MASTER_ADDR=nodea meanwhile=$name_comes ;;
  esac
  start "$variable"
  if summed; then echo starts; else echo "does not start"; fi
}

# row HOSTS: tries all ways, and adds a line to the table. $name_comes is done while ranks wait that meet by a name.
row() {
  local way cell line="| $1 |"
  for way in "${ways[@]}"; do
    [[ -z "$name_comes" ]] || hosts '' '' 10.77.2.1 10.77.2.2
    cell=$(by "$way")
    [[ "$cell" != "does not start" ]] || fail "$1, $way: $cell"
    line+=" $cell |"
  done
  echo "$line"
}

name_it() {
  until_said "the host 'nodea' is not known" $kRanks
  printf '10.77.2.1 nodea\n' | tee -a "$files/hosts.1" >>"$files/hosts.0"
}

# hosts NODEA_ON_0 NODEA_ON_1 HOST_0 HOST_1: what /etc/hosts of both say; "": nothing. mpirun knows the hosts by HOST_*.
hosts() {
  local host
  for host in 0 1; do printf '127.0.0.1 localhost\n%s lab-h0\n%s lab-h1\n' "$3" "$4" >"$files/hosts.$host"; done
  [[ -z "$1" ]] || printf '%s nodea\n' "$1" >>"$files/hosts.0"
  [[ -z "$2" ]] || printf '%s nodea\n' "$2" >>"$files/hosts.1"
}

# Ranks have tried the wrong address.
correct_it() {
  until "$lab" exec 2 -- ip neigh show to 10.77.2.9 | grep -q 10.77.2.9; do
    kill -0 "$job" 2>/dev/null || fail "the job ended before it tried the wrong address"
  done
  printf '10.77.2.1 nodea\n' >"$files/hosts.1"
}

# An interface without a carrier.
unplug() {
  "$lab" exec $((2 * $1)) -- bash -euc '
    ip link add unplugged type veth peer name peer-unplugged
    ip addr add 10.5.0.1/24 dev unplugged
    ip link set unplugged up'
}

# Host $1 gets what containers, virtual machines and networks of its own bring along, all of it before the interface over
# which it reaches the other host. priv0 is a rail, too, and leads nowhere.
surround() {
  "$lab" exec $((2 * $1)) -- bash -euc '
    for old in ctl d2; do ip addr flush dev "$old"; done
    echo 1 >/proc/sys/net/ipv4/conf/d2/arp_ignore # it would answer for net0
    plug() { ip addr add "$2" dev "$1"; ip link set "$1" up; }
    for bridge in docker0 virbr0 br-1f2e; do ip link add "$bridge" type bridge; done
    plug docker0 172.17.0.1/16
    plug virbr0 192.168.122.1/24
    plug br-1f2e 172.18.0.1/16
    for pair in priv0 service; do ip link add "$pair" type veth peer name "peer-$pair"; done
    plug service 169.254.3.1/16
    ip link set peer-service up
    if ip tuntap add tun0 mode tun; then plug tun0 10.8.0.1/24; fi
    if (($0 == 0)); then plug priv0 10.6.0.1/24; fi
    ip link set peer-priv0 up
    ip link add link d2 name net0 type macvlan mode bridge
    plug net0 "10.9.0.$(($0 + 1))/24"' "$1"
}

# Host $1 keeps only IPv6 on net0.
to_ipv6() {
  "$lab" exec $((2 * $1)) -- bash -euc '
    for one in docker0 virbr0 br-1f2e service unplugged priv0 net0; do ip -4 addr flush dev "$one" 2>/dev/null || true; done
    ip addr add "fd00:9::$(($0 + 1))/64" dev net0 nodad' "$1"
}

# The address by which others reach host $1 moves to its loopback interface.
to_loopback() {
  "$lab" exec $((2 * $1)) -- bash -euc '
    ip link del priv0 2>/dev/null || true
    ip addr flush dev net0
    ip addr add "10.9.0.$(($0 + 1))/32" dev lo
    ip route add "10.9.0.$((2 - $0))/32" dev net0' "$1"
}

if [[ "${3:-}" == --inside ]]; then
  codes=() special=() id='' meanwhile='' name_comes='' way_out=d2
  write_agent
  printf '| hosts'
  printf ' | %s' "${ways[@]}"
  printf ' |\n'
  hosts 127.0.1.1 10.77.2.1 10.77.2.1 10.77.2.2
  row "127.0.1.1 in /etc/hosts"
  name_comes=name_it
  row "name known after some seconds"
  name_comes=
  hosts 127.0.1.1 10.77.2.1 10.77.2.1 10.77.2.2
  for host in 0 1; do unplug "$host"; done
  row "interface without carrier"
  meet TRESTLE_RAILS MASTER_ADDR=nodea TRESTLE_RAILS='shm;d2'
  meet TRESTLE_SOCKET_IFNAME MASTER_ADDR=nodea TRESTLE_SOCKET_IFNAME=d2
  meet tcp MASTER_ADDR=nodea TRESTLE_TRANSPORT=tcp

  # What other hosts cannot reach is told to none of them. A rank may come when the others have heard it and left.
  special[0]=TRESTLE_SOCKET_IFNAME=lo
  start MASTER_ADDR=nodea TRESTLE_TIMEOUT=10s
  for rank in 0 '[23]'; do
    grep -q 'rank 0 (host lab-h0, pid [0-9]*) can be reached from its own host only, at 127.0.0.1:' "$files/"out.$rank ||
      fail "host of rank $rank does not hear that rank 0 listens on loopback"
  done
  special[0]=TRESTLE_SOCKET_IFNAME=lo
  id=$files/id
  start TRESTLE_TIMEOUT=10s
  grep -q 'the unique id was made on another host, which can be reached from itself only, at 127.0.0.1:' \
    "$files"/out.[23] || fail "a rank of another host takes an id of loopback"
  special=() id=

  # A name that gets another address while ranks wait, and one that can never have any.
  hosts 10.77.2.1 10.77.2.9 10.77.2.1 10.77.2.2
  meanwhile=correct_it
  meet "an address that nobody has" TRESTLE_COMM_ID=nodea:29520
  meanwhile=
  start MASTER_ADDR=node..a TRESTLE_TIMEOUT=10m
  (($(said "invalid argument: MASTER_ADDR: 'node..a' is not the name of a host: there is nothing between two dots") == kRanks)) ||
    fail "an empty label is not refused"
  start MASTER_ADDR=nosuch TRESTLE_TIMEOUT=1s
  (($(said "timeout: MASTER_ADDR: the host of 'nosuch:29500' was not found in time: ") == kRanks)) || fail "an unknown name is not said"

  way_out=net0
  hosts 127.0.1.1 10.9.0.1 10.9.0.1 10.9.0.2
  for host in 0 1; do surround "$host"; done
  row "docker0, virbr0, a tunnel, a bridge"
  hosts fd00:9::1 fd00:9::1 fd00:9::1 fd00:9::2
  for host in 0 1; do to_ipv6 "$host"; done
  row "IPv6 only"
  hosts 127.0.1.1 10.9.0.1 10.9.0.1 10.9.0.2
  for host in 0 1; do to_loopback "$host"; done
  way_out=lo
  row "address on lo only"
  exit 0
fi

require_lab
inside 2x2@shm,200 870
echo "addresses_test: passed"
