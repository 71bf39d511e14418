#!/usr/bin/env bash
# trestle run on one host whose loopback interface is not as usual, and with an interface that does not exist. Usage:
# one_host_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if there can be no network namespaces.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# job SETUP VARIABLE=VALUE...: two ranks in a network namespace of their own; sets `code` and writes out.
job() {
  code=0
  unshare --net bash -euc 'eval "$0"; exec "$@"' "$1" env -u MASTER_ADDR TRESTLE_TIMEOUT=10m "${@:2}" \
    "$LAB_BUILD/trestle" run -n 2 --timeout 60s -- "$LAB_BUILD/tests/sum_once" >"$files/out" 2>&1 || code=$?
}

# refused WHAT TEXT: both ranks have said it.
refused() {
  ((code == 1)) || fail "$1: exit code $code"
  (($(said "^\[[01]\] invalid .*: $2") == 2)) || fail "$1 is not said"
}

require_lab

job ''
refused "lo is down" 'the loopback interface lo is down, over which this host reaches its own address 127.0.0.1: ip link set lo up'

# What a host sends to itself goes over lo, whatever its address. trestle run itself has no address then.
export WORLD_SIZE=2 MASTER_ADDR=10.9.9.1
plug='ip link add eth0 type veth peer name other; ip addr add 10.9.9.1/24 dev eth0; ip link set eth0 up; ip link set other up'
job "$plug"
grep -q 'at 127.0.0.1 or ::1; is lo up? (ip link set lo up)$' "$files/out" || fail "trestle run does not say that lo is down"
unshare --net bash -euc "$plug"'; RANK=0 "$0" & RANK=1 "$0" || true; wait' "$LAB_BUILD/tests/sum_once" \
  >"$files/out" 2>&1
(($(said '^invalid usage: .* this host reaches its own address 10.9.9.1: ip link set lo up') == 2)) ||
  fail "lo that is down under another address is not said"

job 'ip link set lo up' TRESTLE_RAILS=eth7
refused "TRESTLE_RAILS=eth7" "TRESTLE_RAILS names 'eth7', which is no interface of this host; there are: lo"

job 'ip link set lo up; ip addr del 127.0.0.1/8 dev lo'
((code == 0)) || fail "a host with ::1 only: exit code $code"
(($(said '^\[[01]\] the sum is 3$') == 2)) || fail "a host with ::1 only: wrong sums"

echo "one_host_test: passed"
