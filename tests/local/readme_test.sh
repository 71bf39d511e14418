#!/usr/bin/env bash
# readme_test.sh SOURCE_FOLDER LIBRARY_FOLDER COMPILER SANITIZERS: compiles the C program of README.md and runs it as
# two ranks. It sets the variables itself, without trestle run.
set -euo pipefail
source_folder=$1 library_folder=$2 compiler=$3 sanitizers=$4

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2016 # the backquotes are the ones in the README
sed -n '/^```c$/,/^```$/p' "$source_folder/README.md" | sed '/^```/d' >"$work/program.c"
flags=(-std=c99 -Wall -Wextra -Werror -pedantic "-I$source_folder/include")
if [[ -n "$sanitizers" ]]; then
  flags+=("-fsanitize=$sanitizers")
  if [[ "$compiler" == *clang* ]]; then
    flags+=(-fsanitize-link-c++-runtime -lstdc++)  # the library needs the C++ runtime
  fi
fi
"$compiler" "${flags[@]}" "$work/program.c" "-L$library_folder" -ltrestle "-Wl,-rpath,$library_folder" -o "$work/program"

port=$((20000 + $$ % 10000))
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port TRESTLE_SECRET=readme-$$-$RANDOM$RANDOM
RANK=1 LOCAL_RANK=1 timeout 60 "$work/program" >"$work/1" &
other=$!
RANK=0 LOCAL_RANK=0 timeout 60 "$work/program" >"$work/0"
wait "$other"
diff - <(cat "$work/0" "$work/1") <<'EXPECTED'
rank 0 of 2: 3
rank 1 of 2: 3
EXPECTED
