#!/usr/bin/env bash
# Tests scripts/setup with missing packages and with different rights. Stand-ins replace the system's tools, so nothing
# is installed.
# Usage: setup_test.sh SOURCE_FOLDER
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp "$1/scripts/setup" "$folder/setup"  # all users can read it there
chmod 755 "$folder/setup"

fail() {
  echo "$1" >&2
  cat "$folder/out" >&2
  exit 1
}

# stand_in NAME LINES: a tool that replaces the system's.
stand_in() {
  printf '#!/bin/bash\n%s\n' "$2" >"$folder/$1"
  chmod 755 "$folder/$1"
}

# Packages whose names are in the file "missing" are not installed.
# shellcheck disable=SC2016 # for the stand-ins
stand_in dpkg-query 'grep -qx "${@: -1}" "'"$folder"'/missing" || echo installed'
# shellcheck disable=SC2016
stand_in apt-get 'echo "apt-get $*" >>"'"$folder"'/installed"'
touch "$folder/installed"
chmod 666 "$folder/installed"

# run_setup USER STATUS WORD: runs setup as root or as nobody. The only sudo is a stand-in.
run_setup() {
  local status=0 as=()
  if [[ "$1" == nobody && $EUID == 0 ]]; then as=(setpriv --reuid=65534 --regid=65534 --clear-groups); fi
  : >"$folder/installed"
  PATH=$folder:$folder/system "${as[@]}" bash "$folder/setup" ${3:+"$3"} >"$folder/out" 2>&1 || status=$?
  [[ $status == "$2" ]] || fail "as $1: ended with $status, not $2"
}

said() { grep -qF -- "$1" "$folder/out" || fail "does not say: $1"; }
installs() { grep -qE -- "install.* $1( |\$)" "$folder/installed" || fail "does not install $1: $(cat "$folder/installed")"; }
installs_nothing() { [[ ! -s "$folder/installed" ]] || fail "installs: $(cat "$folder/installed")"; }

# Other tools that setup and the stand-ins call.
mkdir "$folder/system"
chmod 755 "$folder/system"
for tool in bash env grep setpriv true; do
  path=$(type -P "$tool") && ln -s "$path" "$folder/system/$tool"
done

: >"$folder/missing"
run_setup nobody 0 tests
installs_nothing

printf '%s\n' mpich slurmd >"$folder/missing"
run_setup nobody 0 tests
said "left out, because only root can install them: mpich slurmd."
installs_nothing
run_setup nobody 0 ""
installs_nothing

printf '%s\n' libsodium-dev mpich >"$folder/missing"
run_setup nobody 1 tests
said "missing libsodium-dev, and this is neither root nor is there sudo"
installs_nothing

if [[ $EUID == 0 ]]; then
  run_setup root 0 tests
  installs libsodium-dev
  installs mpich
fi

# shellcheck disable=SC2016
stand_in sudo '[[ "$1" == -n ]] && exit 1; exec "$@"'
run_setup nobody 0 tests
installs libsodium-dev
installs mpich
echo mpich >"$folder/missing"
run_setup nobody 0 tests
said "left out, because only root can install them: mpich."
installs_nothing
# shellcheck disable=SC2016
stand_in sudo '[[ "$1" == -n ]] && shift; exec "$@"'
run_setup nobody 0 tests
installs mpich
echo "setup does what it should"
