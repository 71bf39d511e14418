# Functions that the tests of the perf binaries share and source.
folder=$(mktemp -d)
program=  # a background program that does not end by itself
trap '[[ -z "$program" ]] || kill -KILL "$program"; rm -rf "$folder"' EXIT
trap 'exit 1' TERM INT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect CODE PATTERN command...: requires the exit code and a line that matches.
expect() {
  local want=$1 pattern=$2 code=0
  shift 2
  "$@" >"$folder/out" 2>"$folder/err" || code=$?
  [[ $code == "$want" ]] || { cat "$folder/out" "$folder/err"; fail "$* ended with $code, not $want"; }
  grep -qE -- "$pattern" "$folder/out" || { cat "$folder/out"; fail "$* did not say '$pattern'"; }
}
