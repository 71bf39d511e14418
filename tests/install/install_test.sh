#!/usr/bin/env bash
# install_test.sh SOURCE_FOLDER BUILD_FOLDER C_COMPILER: installs into an empty prefix. Then it builds a project that
# uses only that prefix, with find_package and with pkg-config, shared and static, and runs each as two ranks.
set -euo pipefail
source_folder=$1 build=$2 compiler=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install_test: $*" >&2
  exit 1
}

# install_into PREFIX [COMPONENT ...]
install_into() {
  local prefix=$1 component
  shift
  if (($# == 0)); then
    cmake --install "$build" --prefix "$prefix" >/dev/null
  fi
  for component in "$@"; do
    cmake --install "$build" --prefix "$prefix" --component "$component" >/dev/null
  done
}

# Runs it as two ranks of the installed command. It must not need a library of the build folder.
run_it() {
  env -u LD_LIBRARY_PATH timeout 60 "$work/all/bin/trestle" run -n 2 -- "$1" | sort >"$work/output"
  [[ $(grep -c "of 2: the sum is right" "$work/output") == 2 ]] || fail "$1 printed: $(cat "$work/output")"
}

# with_cmake NAME PREFIX [OPTIONS ...]: builds the example in $work/NAME.
with_cmake() {
  local name=$1 prefix=$2
  shift 2
  cmake -S "$work/example" -B "$work/$name" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF "$@" >"$work/$name.log" 2>&1 || return 1
  cmake --build "$work/$name" >>"$work/$name.log" 2>&1
}

needs_the_library() {
  readelf -d "$1" | grep 'NEEDED.*libtrestle\.so\.0' >/dev/null
}

cp -r "$source_folder/tests/install/example" "$work/example"
install_into "$work/all"
install_into "$work/archive" headers static
for file in include/trestle/trestle.h bin/trestle libexec/trestle/all_reduce_perf share/doc/trestle/README.md \
  share/doc/trestle/docs/architecture.md; do
  [[ -e "$work/all/$file" ]] || fail "$file was not installed"
done
if grep -rlF -e "$build" -e "$source_folder" "$work"/all/lib*/cmake "$work"/all/lib*/pkgconfig "$work"/archive/lib*; then
  fail "these name folders of the build"
fi
lib=$(dirname "$(ls "$work"/all/lib*/libtrestle.so)")
pc=$(basename "$lib")/pkgconfig

# With CMake.
with_cmake shared "$work/all" || fail "find_package, shared: $(cat "$work/shared.log")"
needs_the_library "$work/shared/example" || fail "trestle::trestle is not the shared library"
run_it "$work/shared/example"
with_cmake static "$work/all" -DEXAMPLE_TARGET=trestle::trestle_static || fail "find_package, static: $(cat "$work/static.log")"
needs_the_library "$work/static/example" && fail "trestle::trestle_static is not the archive"
run_it "$work/static/example"
with_cmake alone "$work/archive" || fail "find_package where only the archive is: $(cat "$work/alone.log")"
run_it "$work/alone/example"
with_cmake newer "$work/all" -DEXAMPLE_WANTS=7.3 && fail "a version that is not there was found"
grep -q 'version: 0\.' "$work/newer.log" || fail "the version was refused for another reason: $(cat "$work/newer.log")"

# With pkg-config. Its output is split into single flags.
read -ra flags < <(PKG_CONFIG_PATH="$work/all/$pc" pkg-config --cflags --libs trestle)
rpath=-Wl,-rpath,$(PKG_CONFIG_PATH="$work/all/$pc" pkg-config --variable=libdir trestle)
"$compiler" "$work/example/main.c" "${flags[@]}" "$rpath" -o "$work/with_pkg_config"
needs_the_library "$work/with_pkg_config" || fail "pkg-config does not lead to the shared library"
run_it "$work/with_pkg_config"
read -ra flags < <(PKG_CONFIG_PATH="$work/archive/$pc" pkg-config --static --cflags --libs trestle)
"$compiler" "$work/example/main.c" "${flags[@]}" -o "$work/with_pkg_config_static"
needs_the_library "$work/with_pkg_config_static" && fail "pkg-config --static does not lead to the archive"
run_it "$work/with_pkg_config_static"

# The prefix may be moved.
mv "$work/all" "$work/moved"
mkdir "$work/all"
ln -s "$work/moved/bin" "$work/all/bin"
env -u LD_LIBRARY_PATH "$work/moved/bin/trestle" version >/dev/null || fail "the command does not find its library after a move"
env -u LD_LIBRARY_PATH timeout 60 "$work/moved/libexec/trestle/all_reduce_perf" -P 2 -b 8 -e 8 -n 2 -w 1 >/dev/null ||
  fail "a perf binary does not find its library after a move"
if [[ -e "$build/nccl/libnccl.so.2" ]]; then
  shim=$(find "$work/moved" -path '*/trestle/nccl/libnccl.so.2')
  [[ -n "$shim" ]] || fail "libnccl.so.2 was not installed"
  env -u LD_LIBRARY_PATH ldd "$shim" | grep "libtrestle\.so\.0 => $work/moved" >/dev/null ||
    fail "libnccl.so.2 does not find its library after a move: $(ldd "$shim")"
fi
PKG_CONFIG_PATH="$work/moved/$pc" pkg-config --cflags trestle | grep "$work/moved" >/dev/null || fail "the pkg-config file names a fixed prefix"

# As a part of another project, which is only configured: it gets the library, and nothing else unless it asks.
mkdir "$work/whole"
cat >"$work/whole/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(whole LANGUAGES C)
add_subdirectory("$source_folder" trestle)
add_executable(example "$source_folder/tests/install/example/main.c")
target_link_libraries(example PRIVATE trestle::trestle)
if(TRESTLE_STATIC)
  target_link_libraries(example PRIVATE trestle::trestle_static)
endif()
END
for static in OFF ON; do
  cmake -S "$work/whole" -B "$work/whole/$static" -DTRESTLE_STATIC=$static -DTRESTLE_CUDA=OFF -DCMAKE_C_COMPILER="$compiler" \
    >"$work/whole.log" 2>&1 || fail "add_subdirectory: $(cat "$work/whole.log")"
done
targets=$(cmake --build "$work/whole/OFF" --target help)
grep -qw trestle <<<"$targets" || fail "add_subdirectory builds no library: $targets"
if grep -qwE 'trestle_cli|trestle_perf|trestle_nccl|trestle_static|trestle_test_header' <<<"$targets"; then
  fail "add_subdirectory builds more than was asked for: $targets"
fi
echo "install_test: passed"
