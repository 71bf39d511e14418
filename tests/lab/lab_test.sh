#!/usr/bin/env bash
# A small lab (scripts/lab): every policy's all-reduce is right on it, every dimension's bytes use its own links, and
# the lab leaves nothing behind. Usage: lab_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is
# possible.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"

if [[ "${3:-}" == --inside ]]; then
  policies=$("$LAB_BUILD/trestle" env | sed -n '/^TRESTLE_SCHED /,/^TRESTLE_INTRA /s/.*one of \([a-z,]*\).*/\1/p' | head -n 1)
  for policy in ${policies//,/ }; do
    declare -A before=()
    while read -r name sent; do before[$name]=$sent; done < <("$lab" counters)
    ((${#before[@]} == 2)) || fail "a lab of two dimensions with ${#before[@]} counters"
    TRESTLE_SCHED=$policy "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 1M -e 1M -n 1 -w 0 -c 1
    while read -r name sent; do
      # Three all-reduces of 1 MiB on four ranks. A dimension carries fewer than 4 * 3 * 512 KiB only if the others
      # carry everything.
      ((sent - before[$name] > 1 << 20)) || fail "$policy: $name carried only $((sent - before[$name])) bytes"
    done < <("$lab" counters)
  done
  hosts=$("$lab" ranks -- hostname | sort | uniq | wc -l)
  ((hosts == 4)) || fail "the four ranks are on $hosts hosts"
  exit 0
fi

require_lab
# A lab has no names, so it could leave only files and processes behind.
inside small
if "$lab" run small -- sh -c 'exit "$RANK"'; then fail "a rank that fails must make the run fail"; fi
if compgen -G "${TMPDIR:-/tmp}/trestle-lab.$$.*" >/dev/null; then fail "files were left"; fi
if setpriv --reuid 65534 --clear-groups "$lab" run small -- true 2>/dev/null; then fail "it must refuse without root"; fi
