# shellcheck shell=bash
# What the tests in labs share; they source it with their arguments, SOURCE_DIR and BUILD_DIR. A test runs itself again
# inside its lab, with --inside and the folder `files`.
name=$(basename "$0" .sh)
source_dir=$1
export LAB_BUILD=$2
lab=$source_dir/scripts/lab
files=${4:-}
job=

fail() {
  echo "$name: $*" >&2
  [[ -z "$files" ]] || cat "$files"/out* 2>/dev/null | tail -n 60 | sed 's/^/  /' >&2
  exit 1
}

# Ends the test with 77 and a reason if no lab is possible. Makes the folder `files`.
require_lab() {
  if ((EUID != 0)); then
    echo "$name: skipped: network namespaces and shaping need root"
    exit 77
  fi
  if ! "$lab" run 2@100 -- true; then
    echo "$name: skipped: there can be no lab here"
    exit 77
  fi
  [[ -n "$files" ]] || files=$(mktemp -d)
  trap 'rm -rf "$files"' EXIT
}

# inside SYSTEM [SECONDS]: this test again, in a lab. One that hangs ends before ctest's limit does, so that its output
# is seen.
inside() {
  local code=0
  timeout "${2:-270}" "$lab" inside "$1" -- "$0" "$source_dir" "$LAB_BUILD" --inside "$files" || code=$?
  ((code != 124)) || fail "$1: not finished after ${2:-270} s"
  ((code == 0)) || exit "$code"
}

# said TEXT: how many lines with TEXT the ranks have written.
said() {
  cat "$files"/out* | grep -c "$1" || true
}

# until_said TEXT COUNT: waits until the ranks have written lines with TEXT that often.
until_said() {
  until (($(said "$1") >= $2)); do
    kill -0 "$job" 2>/dev/null || fail "the job ended before it said '$1' $2 times"
  done
}
