#!/usr/bin/env bash
# The perf binaries on memory of GPUs, those of a fake driver: nothing wrong, and what they say of where buffers lie.
# Usage: perf_device_test.sh FOLDER_OF_THE_BINARIES FAKE_CUDA_DRIVER
set -euo pipefail
perf=$1 driver=$2
source "$(dirname "${BASH_SOURCE[0]}")/perf_expect.sh"

small=(-b 64 -e 64K -f 32 -n 2 -w 1)
clean='^# Out of bounds values : 0 OK$'
mkdir "$folder/no_cuda" "$folder/cuda"
printf 'no driver' >"$folder/no_cuda/libcuda.so.1"
ln -s "$driver" "$folder/cuda/libcuda.so.1"
without() { env LD_LIBRARY_PATH="$folder/no_cuda" "$@"; }
# The sanitizer of leaks looks through all memory at the end, and cannot read the fake GPUs' own.
with() { env FAKE_DRIVER_RUNS_STREAMS=1 LD_LIBRARY_PATH="$folder/cuda" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "$@"; }
# on_device PROGRAM FLAGS...
on_device() { with "$1" --location device "${small[@]}" "${@:2}"; }
# says PATTERN, of the last run.
says() {
  grep -qE -- "$1" "$folder/out" || { cat "$folder/out"; fail "nobody says '$1'"; }
}

# All collectives, as processes and threads, two ranks on two GPUs; in place sendrecv is a race among threads.
for binary in all_reduce all_gather reduce_scatter broadcast reduce gather scatter alltoall alltoallv sendrecv hypercube; do
  expect 0 "$clean" on_device "$perf/${binary}_perf" -P 2
  says '^#  Rank  1 .* device  1 \[[[:xdigit:]]{4}:[[:xdigit:]]{2}:[[:xdigit:]]{2}\] '
  ! grep -q 'host memory' "$folder/out" || fail "${binary}_perf has buffers in host memory"
  [[ $binary != sendrecv ]] || continue
  expect 0 "$clean" on_device "$perf/${binary}_perf" -t 2
done
# More ranks than GPUs; several ranks of a thread; one rank.
expect 0 "$clean" on_device "$perf/all_reduce_perf" -P 2 -t 2
says '^#  Rank  2 .* device  0 '
expect 0 "$clean" on_device "$perf/all_reduce_perf" -g 3
expect 0 "$clean" on_device "$perf/all_reduce_perf"
expect 0 "$clean" on_device "$perf/all_reduce_perf" -t 2 -d all -o all -b 256 -e 256
# Groups, the communicators' own streams, waiting, buffers that are not aligned, groups of ranks, times of calls.
for flags in "-m 3" "-y 1" "-z 1" "-I 1" "-p 1" "-u 1" "-c 2" "--call-times 1"; do
  # shellcheck disable=SC2086
  expect 0 "$clean" on_device "$perf/all_reduce_perf" -t 2 $flags
done
expect 0 '^# Buffers: memory of GPUs, which Trestle does not register' on_device "$perf/all_reduce_perf" -t 2 -R 1
expect 0 "$clean" env NCCL_TESTS_SPLIT='MOD 2' FAKE_DRIVER_RUNS_STREAMS=1 LD_LIBRARY_PATH="$folder/cuda" \
  "$perf/all_gather_perf" -P 4 --location device "${small[@]}"

# auto: where TRESTLE_DEVICE names a GPU, and then that one for all ranks.
expect 0 "$clean" with "$perf/all_reduce_perf" -t 2 "${small[@]}"
says ' device  1 \[0000:00:00\] host memory$'
expect 0 "$clean" with TRESTLE_DEVICE=1 "$perf/all_reduce_perf" -t 2 "${small[@]}"
says '^#  Rank  0 .* device  1 '
says '^#  Rank  1 .* device  1 '
! grep -q 'host memory' "$folder/out" || fail "TRESTLE_DEVICE names a GPU, and buffers are in host memory"
expect 0 ' host memory$' with TRESTLE_DEVICE=-1 "$perf/all_reduce_perf" -t 2 "${small[@]}"
expect 0 ' host memory$' with TRESTLE_DEVICE=1 "$perf/all_reduce_perf" -t 2 --location host "${small[@]}"
expect 0 '^#  Rank  0 .* device  1 ' with NCCL_TESTS_DEVICE=1 "$perf/all_reduce_perf" -t 2 --location device "${small[@]}"

# What is refused.
expect 255 '^all_reduce_perf: --location device: .*libcuda' without "$perf/all_reduce_perf" -t 2 --location device
expect 255 '^all_reduce_perf: TRESTLE_DEVICE: .*libcuda' without TRESTLE_DEVICE=0 "$perf/all_reduce_perf" -t 2
expect 255 "TRESTLE_DEVICE is the index of a GPU below 2, not '7'" with TRESTLE_DEVICE=7 "$perf/all_reduce_perf" -t 2
expect 255 "TRESTLE_TESTS_DEVICE is the index of a GPU below 2, not 'x'" with NCCL_TESTS_DEVICE=x "$perf/all_reduce_perf" --location device
expect 255 'not with -I' with "$perf/all_reduce_perf" -t 2 -G 1 -I 1 --location device

# The iterations in a graph, threads and processes, several calls of a group, messages.
for ranks in "-t 2" "-P 2" "-g 2"; do
  expect 0 "$clean" on_device "$perf/all_reduce_perf" $ranks -G 3 -n 4 -m 2 -c 2
  says 'validation: 2 graph: 3'
  expect 0 "$clean" on_device "$perf/sendrecv_perf" $ranks -G 2 -n 3 -c 1
done

# The report says which GPU each rank has.
expect 0 "$clean" on_device "$perf/all_reduce_perf" -P 2 -J "$folder/a.json"
if command -v python3 >/dev/null; then
  python3 - "$folder/a.json" <<'PYTHON' || fail "the report is wrong"
import json, sys
devices = json.load(open(sys.argv[1]))["config"]["devices"]
assert [device["device"] for device in devices] == [0, 1], devices
assert all(device["device_info"] != "host memory" for device in devices), devices
assert devices[0]["device_hex"] != devices[1]["device_hex"], devices
PYTHON
fi
echo fine
