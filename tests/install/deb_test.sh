#!/usr/bin/env bash
# deb_test.sh BUILD_FOLDER: CPack makes a Debian package with the right files and dependencies.
set -euo pipefail
build=$1

if ! command -v dpkg-deb >/dev/null; then
  echo "deb_test: skipped, this is no Debian"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}
package=$(ls "$work"/trestle_*.deb)
dpkg-deb -c "$package" | awk '{ print $6 }' >"$work/content"
for file in include/trestle/trestle.h bin/trestle libexec/trestle/all_reduce_perf lib/pkgconfig/trestle.pc lib/cmake/trestle/trestleConfig.cmake; do
  # The folder of the libraries depends on the configured prefix (lib/<triplet> for /usr).
  grep -Eq "^\./usr/${file/lib\//lib\/([^\/]+-linux-gnu\/)?}\$" "$work/content" || {
    echo "deb_test: no $file in the package:" >&2
    cat "$work/content" >&2
    exit 1
  }
done
grep -Eq '/libtrestle\.so\.0$' "$work/content"
if command -v dpkg-shlibdeps >/dev/null; then
  dpkg-deb -f "$package" Depends | tee "$work/depends"
  grep -q 'libc6' "$work/depends"
  grep -q 'libsodium' "$work/depends"
fi
dpkg-deb --ctrl-tarfile "$package" | tar -xO ./triggers | grep ldconfig >/dev/null
dpkg-deb -x "$package" "$work/root"
env -u LD_LIBRARY_PATH "$work/root/usr/bin/trestle" version >/dev/null
echo "deb_test: passed"
