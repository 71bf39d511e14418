# What the tests of the perf binaries have in common; they source it.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# expect CODE PATTERN command...: the exit code, and a line that matches.
expect() {
  local want=$1 pattern=$2 code=0
  shift 2
  "$@" >"$folder/out" 2>"$folder/err" || code=$?
  [[ $code == "$want" ]] || { cat "$folder/out" "$folder/err"; fail "$* ended with $code, not $want"; }
  grep -qE -- "$pattern" "$folder/out" || { cat "$folder/out"; fail "$* did not say '$pattern'"; }
}
