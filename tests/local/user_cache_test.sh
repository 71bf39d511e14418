#!/usr/bin/env bash
# Test programs leave the user's cache alone, also when they are started by hand and every communicator is measured.
#   user_cache_test.sh BUILD_DIR
set -euo pipefail
tests=$1/tests
home=$(mktemp -d)
trap 'rm -rf "$home" "$tests/cache"' EXIT

fail() {
  echo "user_cache_test: $*" >&2
  exit 1
}

# as_user PROGRAM [FILTER]
as_user() {
  local output
  output=$(env -u XDG_CACHE_HOME -u TRESTLE_CALIBRATION_DIR -u TRESTLE_CALIBRATE HOME="$home" RANKS_TRESTLE_CALIBRATE=full \
    "$tests/$1" --gtest_filter="${2:-*}" 2>&1) || fail "$1 has failed: $output"
  [[ -z "$(ls -A "$home")" ]] || fail "$1 has left in the user's home: $(find "$home" -type f)"
}

rm -rf "$tests/cache"
as_user calibration_test 'CalibrationTest.Full*:CalibrateCommand.*'
as_user api_processes_test ApiProcesses.SharedMemory
compgen -G "$tests/cache/trestle/*.calibration" >/dev/null || fail "nothing was measured, so nothing is proved"
