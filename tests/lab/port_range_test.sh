#!/usr/bin/env bash
# A TRESTLE_PORT_RANGE needs, at each interface, a port for the data of each rank of the host and, with several rails,
# one for its control mesh. With so many a job runs; with fewer it ends with a sentence that says how many are needed,
# and for what. Usage: port_range_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

# expect PORTS OUTCOME: of a job with so many ports. OUTCOME: runs, or a part of the sentence. The lab's topology file
# names the rails.
expect() {
  local code=0 patience=10m
  # Ranks wait until their deadline for one that cannot even listen.
  [[ "$2" == runs ]] || patience=10s
  TRESTLE_TIMEOUT=$patience TRESTLE_PORT_RANGE=41000-$((41000 + $1 - 1)) "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 64K -e 64K -w 1 -n 1 -c 1 \
    >"$files/out" 2>&1 || code=$?
  if [[ "$2" == runs ]]; then
    ((code == 0)) || fail "$LAB_SYSTEM with $1 ports fails"
    grep -q '# Out of bounds values : 0 OK' "$files/out" || fail "$LAB_SYSTEM with $1 ports: a sum is wrong"
  else
    ((code != 0)) || fail "$LAB_SYSTEM with $1 ports runs, where this was expected: $2"
    grep -q "$2" "$files/out" || fail "$LAB_SYSTEM with $1 ports does not say: $2"
  fi
}

if [[ "${3:-}" == --inside ]]; then
  export LAB_CONTROL=rails
  while read -r system ports outcome; do
    [[ "$system" != "$LAB_SYSTEM" ]] || expect "$ports" "$outcome"
  done <<'END'
2@200 1 runs
2@200 2 runs
2@200 3 runs
2@200+100 1 has 1 port, and this communicator needs 2 at each interface of this host: 1 for data and 1 for the control mesh of each rank, and 1 rank is here
2@200+100 2 runs
2@200+100 3 runs
2x2@shm,200 1 needs 1 port at each interface for each rank of this host
2x2@shm,200 2 runs
2x2@shm,200 3 runs
2x2@shm,200+100 1 needs 1 port at each interface for each rank of this host
2x2@shm,200+100 2 has 2 ports, and this communicator needs 4 at each interface of this host: 1 for data and 1 for the control mesh of each rank, and 2 ranks are here
2x2@shm,200+100 3 has 3 ports, and this communicator needs 4 at each interface of this host: 1 for data and 1 for the control mesh of each rank, and 2 ranks are here
2x2@shm,200+100 4 runs
END
  exit 0
fi

require_lab
for system in 2@200 2@200+100 2x2@shm,200 2x2@shm,200+100; do inside "$system" 120; done
echo "port_range_test: passed"
