#!/usr/bin/env bash
# exports_test.sh LIBRARY SYMBOLS [OTHER]: the library exports ncclNAME, weak, and pncclNAME for every NAME in the file SYMBOLS, and
# nothing else. It needs libtrestle.so.0, and is libnccl.so.2 to the loader. Where OTHER, a libnccl.so.2 of NVIDIA's, is there, the
# library has all of its functions.
set -euo pipefail
library=$1 symbols=$2 other=${3:-}

# One line for each function: the letter of nm, and the name.
functions_of() {
  nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $2, $3 }' | sort
}

expected=$(sed -e 's/.*/W nccl&\nT pnccl&/' "$symbols" | sort)
diff <(echo "$expected") <(functions_of "$library") || {
  echo "exports differ from $symbols ('<': expected only, '>': exported only)" >&2
  exit 1
}

dynamic=$(readelf -d "$library")
for fact in 'SONAME.*\[libnccl\.so\.2\]' 'NEEDED.*\[libtrestle\.so\.0\]'; do
  grep -q "$fact" <<<"$dynamic" || {
    echo "the library has no $fact" >&2
    exit 1
  }
done

if [[ -n "$other" ]]; then
  # Named Internal: one that NCCL exports, but declares nowhere.
  missing=$(comm -23 <(functions_of "$other" | awk '$2 ~ /^p?nccl/ && $2 !~ /Internal$/ { print $2 }' | sort) \
    <(functions_of "$library" | awk '{ print $2 }' | sort))
  if [[ -n "$missing" ]]; then
    echo "$other has more: $missing" >&2
    exit 1
  fi
fi
