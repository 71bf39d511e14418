#!/usr/bin/env bash
# The perf binaries with --backend nccl and --location: NCCL's rows beside Trestle's, and the sentences about what cannot be compared.
# Usage: perf_nccl_test.sh FOLDER_OF_THE_BINARIES OUR_LIBNCCL [FOREIGN_LIBNCCL FAKE_CUDA_DRIVER]
# FOREIGN_LIBNCCL looks like NVIDIA's, which takes memory of GPUs only (foreign_nccl.cpp); the fake driver stands for libcuda.so.1.
set -euo pipefail
perf=$1 ours=$2 foreign=${3:-} driver=${4:-}
source "$(dirname "${BASH_SOURCE[0]}")/../perf_expect.sh"

small=(-b 64 -e 4K -f 8 -n 2 -w 1)
beside=(--backend nccl --nccl-library "$ours")
clean='^# Out of bounds values : 0 OK$'
# rows_alternate: each row of Trestle's is followed by one of NCCL's with the same size, count and type.
rows_alternate() {
  awk '/^ +[0-9]/ { head = $1 " " $2 " " $3
                    if ($NF == "trestle") { if (open) exit 1; open = 1; first = head; ++rows }
                    else if ($NF == "nccl") { if (!open || head != first) exit 1; open = 0 }
                    else exit 1 }
       END { if (open || !rows) exit 1 }' "$folder/out" || { cat "$folder/out"; fail "the rows of $* do not alternate"; }
}

# All collectives, as processes and threads; in place sendrecv is a race among threads. Then several ranks of a thread.
for binary in all_reduce all_gather reduce_scatter broadcast reduce gather scatter alltoall alltoallv sendrecv hypercube; do
  expect 0 "$clean" "$perf/${binary}_perf" -P 2 "${small[@]}" "${beside[@]}"
  rows_alternate "$binary"
  [[ $binary != sendrecv ]] || continue
  expect 0 "$clean" "$perf/${binary}_perf" -t 2 "${small[@]}" "${beside[@]}"
done
expect 0 "$clean" "$perf/all_reduce_perf" -P 2 -g 2 "${small[@]}" "${beside[@]}"
expect 0 "$clean" "$perf/hypercube_perf" -g 2 "${small[@]}" "${beside[@]}"
for name in all_reduce reduce_scatter reduce; do
  expect 0 "$clean" "$perf/${name}_perf" -t 2 -b 256 -e 256 -n 1 -d all -o all "${beside[@]}"
  [[ $(grep -cE ' nccl$' "$folder/out") == 72 ]] || fail "${name}_perf left types or operators of NCCL out"
done
expect 0 "^# NCCL: '$ours', 2\.30\.7, buffers in host memory$" "$perf/all_reduce_perf" -P 2 "${small[@]}" "${beside[@]}"
expect 0 ' backend$' "$perf/all_reduce_perf" -P 2 "${small[@]}" "${beside[@]}"
expect 0 '^# Avg busbw of nccl    : [0-9.e+-]+, time [0-9.e+-]+ of Trestle' "$perf/all_reduce_perf" -P 2 "${small[@]}" "${beside[@]}"
# Groups, streams, registrations, waiting, one rank.
for flags in "-m 3" "-y 1" "-R 1" "-R 2" "-z 1" "-I 1" "-p 1" "-u 1"; do
  # shellcheck disable=SC2086
  expect 0 "$clean" "$perf/all_reduce_perf" -t 2 $flags "${small[@]}" "${beside[@]}"
done
expect 0 '^# -R 2: this library has no windows' "$perf/all_reduce_perf" -t 2 -R 2 "${small[@]}" "${beside[@]}"
expect 0 "$clean" "$perf/all_reduce_perf" "${small[@]}" "${beside[@]}"
expect 0 "$clean" env NCCL_TESTS_SPLIT='MOD 2' "$perf/all_gather_perf" -P 4 "${small[@]}" "${beside[@]}"

# Columns of --call-times; a report has everything.
expect 0 'host +issue +launch .* host +issue +launch +backend$' "$perf/all_reduce_perf" -P 2 --call-times 1 -J "$folder/a.json" "${small[@]}" "${beside[@]}"
expect 0 'host +issue +launch .* host +issue +launch$' "$perf/alltoallv_perf" -t 2 --call-times 1 "${small[@]}"
if command -v python3 >/dev/null; then
  python3 - "$folder/a.json" <<'PYTHON' || fail "the report is wrong"
import json, sys
report = json.load(open(sys.argv[1]))
assert [(row["size"], row["backend"]) for row in report["results"]] == [
    (size, backend) for size in (64, 512, 4096) for backend in ("trestle", "nccl")], report["results"]
for row in report["results"]:
    for half in (row["out_of_place"], row["in_place"]):
        assert 0 < half["host_us"] <= half["launch_us"] and half["issue_us"] > 0, row
compared, = report["compared"]
assert compared["backend"] == "nccl" and compared["time_ratio"] > 0, compared
PYTHON
fi

# Without --backend nothing of this is there.
expect 0 "$clean" "$perf/all_reduce_perf" -t 2 "${small[@]}"
! grep -q 'backend\|nccl' "$folder/out" || { cat "$folder/out"; fail "a backend that nobody asked for"; }
expect 0 "$clean" "$perf/all_reduce_perf" -t 2 --location host "${small[@]}" "${beside[@]}"

# Libraries that are none, or not NCCL.
echo "no library" >"$folder/text.so"
expect 255 "'$folder/text.so' cannot be loaded: " "$perf/all_reduce_perf" -P 2 --backend nccl --nccl-library "$folder/text.so"
expect 255 "'/nonexistent/libnccl.so.2' cannot be loaded: " "$perf/all_reduce_perf" -t 2 --backend nccl --nccl-library /nonexistent/libnccl.so.2
expect 255 "'libm.so.6' is not a library of NCCL 2.7 or newer: it has no ncclGetVersion, ncclGetUniqueId" \
  "$perf/all_reduce_perf" --backend nccl --nccl-library libm.so.6
expect 255 'takes nccl' "$perf/all_reduce_perf" --backend gloo
expect 255 'is for --backend nccl' "$perf/all_reduce_perf" --nccl-library "$ours"
expect 255 'auto, host or device' "$perf/all_reduce_perf" --location disk
expect 0 'the kernels are compared with memcpy' "$perf/kernel_perf" -b 64 -e 64 -n 1 --backend nccl
expect 0 'device_perf measures' "$perf/kernel_perf" -b 64 -e 64 -n 1 --location device

[[ -n "$foreign" ]] || { echo fine; exit 0; }

# NVIDIA's takes memory of GPUs. Without a driver that finds one, that is said at once.
mkdir "$folder/no_cuda" "$folder/cuda"
printf 'no driver' >"$folder/no_cuda/libcuda.so.1"
ln -s "$driver" "$folder/cuda/libcuda.so.1"
nvidia=(--backend nccl --nccl-library "$foreign")
export FOREIGN_NCCL_OVER=$ours
without() { env LD_LIBRARY_PATH="$folder/no_cuda" "$@"; }
with() { env FAKE_DRIVER_RUNS_STREAMS=1 LD_LIBRARY_PATH="$folder/cuda" "$@"; }
expect 255 'takes memory of GPUs only' "$perf/all_reduce_perf" -t 2 --location host "${nvidia[@]}"
expect 255 'takes memory of GPUs only, and .*libcuda' without "$perf/all_reduce_perf" -P 2 "${nvidia[@]}"
expect 255 '^all_reduce_perf: --location device: .*libcuda' without "$perf/all_reduce_perf" -P 2 --location device
expect 255 'not with -I' with "$perf/all_reduce_perf" -P 2 -G 1 -y 1 "${nvidia[@]}"

# With two (fake) GPUs: one rank on each. What NCCL makes of messages is the same.
for binary in all_reduce all_gather reduce_scatter broadcast reduce gather scatter alltoall alltoallv sendrecv hypercube; do
  expect 0 "$clean" with "$perf/${binary}_perf" -P 2 -c 2 -u 1 "${small[@]}" "${nvidia[@]}"
  rows_alternate "$binary" "on GPUs"
done
expect 0 "$clean" with "$perf/all_reduce_perf" -t 2 -R 1 "${small[@]}" "${nvidia[@]}"
expect 0 '^# -R 2: NCCL 2\.30\.7 has no MemAlloc' with "$perf/all_reduce_perf" -t 2 -R 2 "${small[@]}" "${nvidia[@]}"
expect 0 "buffers in memory of GPU [0-9a-f:.]+, " with "$perf/all_reduce_perf" -t 2 "${small[@]}" "${nvidia[@]}"
! grep -q 'host memory' "$folder/out" || fail "Trestle's buffers are not where NCCL's are"
# One thread calls for both GPUs on their default streams. Each device has its own.
for flags in "-g 2" "-g 2 -y 1" "-t 2 -y 1"; do
  # shellcheck disable=SC2086
  expect 0 "$clean" with "$perf/all_reduce_perf" $flags -c 2 "${small[@]}" "${nvidia[@]}"
  rows_alternate "$flags"
done
# Trestle's own library has its buffers where Trestle's are, also where ranks share a GPU.
for flags in "-t 2" "-t 3" "-P 2 -g 2" "-g 2 -y 1"; do
  # shellcheck disable=SC2086
  expect 0 '^# NCCL: .*, buffers in memory of GPU ' with "$perf/all_reduce_perf" $flags -c 2 --location device "${small[@]}" "${beside[@]}"
  rows_alternate "own, $flags"
done
expect 255 'TRESTLE_DEVICE gives the ranks of .* a GPU' with TRESTLE_DEVICE=1 "$perf/all_reduce_perf" -t 2 --location host "${small[@]}" "${beside[@]}"
expect 0 "$clean" with NCCL_TESTS_DEVICE=1 "$perf/all_reduce_perf" -t 2 "${small[@]}" "${nvidia[@]}"
expect 255 "below 2, not '2'" with NCCL_TESTS_DEVICE=2 "$perf/all_reduce_perf" -t 2 "${small[@]}" "${nvidia[@]}"
# Three ranks on two GPUs: only Trestle is measured, and that is said.
expect 0 'not compared, because ranks 0 and 2 are on GPU .*, and NCCL takes that only with NCCL_MULTI_RANK_GPU_ENABLE=1$' \
  with "$perf/all_reduce_perf" -P 3 "${small[@]}" "${nvidia[@]}"
! grep -q ' nccl$' "$folder/out" || fail "rows of NCCL, which was not to be compared"
expect 0 'NCCL 2\.28\.3 takes one rank per GPU' with FOREIGN_NCCL_VERSION=22803 "$perf/all_reduce_perf" -t 3 "${small[@]}" "${nvidia[@]}"
expect 0 ' nccl$' with NCCL_MULTI_RANK_GPU_ENABLE=1 "$perf/all_reduce_perf" -P 3 "${small[@]}" "${nvidia[@]}"
expect 0 'no rows with f8e4m3: NCCL 2\.20\.5 has no 8-bit floats' with FOREIGN_NCCL_VERSION=22005 "$perf/all_reduce_perf" -t 2 -d f8e4m3 "${small[@]}" "${nvidia[@]}"
grep -q '^ .* trestle$' "$folder/out" || fail "Trestle's rows are missing where NCCL has none"
expect 0 'no rows with mulsum' with "$perf/all_reduce_perf" -t 2 -o mulsum "${small[@]}" "${nvidia[@]}"
echo fine
