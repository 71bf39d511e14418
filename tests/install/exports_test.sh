#!/usr/bin/env bash
# exports_test.sh LIBRARY HEADER...: the shared library exports the functions of its headers and nothing else.
set -euo pipefail
library=$1
shift

exported=$(nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort)
declared=$(cat "$@" | grep -v '^ *#' | tr '\n' ' ' | grep -oE 'TRESTLE_API [^;(]*\(' | sed -E 's/.*[ *](trestle[A-Za-z0-9]+)\($/\1/' | sort)
if [[ $(wc -l <<<"$declared") -lt 40 ]]; then
  echo "the reader of the header finds too little: $declared" >&2
  exit 1
fi
diff <(echo "$declared") <(echo "$exported") || {
  echo "exports differ from the header ('<': declared only, '>': exported only); see cmake/trestle.map" >&2
  exit 1
}
