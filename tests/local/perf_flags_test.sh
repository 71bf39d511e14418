#!/usr/bin/env bash
# Flags of the perf binaries that change how something runs or is shown. The output must show the effect of each.
# Usage: perf_flags_test.sh FOLDER_OF_THE_BINARIES
set -euo pipefail
perf=$1
source "$(dirname "${BASH_SOURCE[0]}")/perf_expect.sh"

one=(-b 64 -e 64 -n 2)
# shows PATTERN flags...: the run on two ranks is correct, and a line matches.
shows() {
  local pattern=$1
  shift
  expect 0 "$pattern" "$perf/all_reduce_perf" -t 2 "${one[@]}" "$@"
  grep -q '^# Out of bounds values : 0 OK$' "$folder/out" || { cat "$folder/out"; fail "wrong results with $*"; }
}

shows '^# Blocking: wait and barrier after each iteration$' -z 1
shows '^# Blocking: wait after each iteration$' -z 2
shows '^# Blocking: wait after each iteration, then a barrier that is not timed$' -z 3
shows "^# Stream: the communicators' own$" -y 1
shows '^# Parallel init: each thread initialises its own ranks$' -p 1 -g 2
shows '^# Times: of rank 0$' -a 0
shows '^# Times: of the fastest rank$' -a 2
shows '^# Times: of the slowest rank$' -a 3
shows ' cputime .* cputime ' -C 1
shows ' agg iters: 3 ' -m 3
shows '^ +64 +16 .* 0 +[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$' -S 1
grep -qE '#wrong +timestamp$' "$folder/out" || fail "-S has no title"
shows '^ +64 +16 +float +sum +-1 .* N/A .* N/A$' -c 0
shows '^ +64 +16 .* 0$' -c 3
shows '^# nThread 2 .* validation: 3 ' -c 3
shows '^# Using devices$'
[[ $(grep -cE '^# (Times|Stream|Blocking|Parallel)' "$folder/out") == 0 ]] || fail "defaults need no line"

# Flags for GPUs.
for flag in G x D V M; do shows "^# -$flag \(.*\) does nothing (on host memory|here)$" "-$flag" 1; done

expect 0 '--blocking' "$perf/all_reduce_perf" -h
expect 0 '--sources' "$perf/kernel_perf" -h

# The kernels binary names each flag that it does not use in its own sentence.
for flag in G M x D V; do
  expect 0 "^# -$flag \(.*\) does nothing (on host memory|here)$" "$perf/kernel_perf" "${one[@]}" "-$flag" 1
done
for flag in m=2 p=1 r=1 a=0 R=1 y=1 z=1 T=5 C=1; do
  expect 0 "^# -${flag%=*} \(.*\) does nothing here" "$perf/kernel_perf" "${one[@]}" "-${flag%=*}" "${flag#*=}"
done
expect 0 '^# -I and -K' "$perf/kernel_perf" "${one[@]}" -I 1
expect 0 '^# -I and -K' "$perf/kernel_perf" "${one[@]}" -K 1
expect 0 '^# --predict' "$perf/kernel_perf" "${one[@]}" --predict 8K
expect 0 '^ +64 .* [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}$' "$perf/kernel_perf" "${one[@]}" -S 1
[[ $(grep -c 'does nothing' "$folder/out") == 0 ]] || fail "-S is served, and kernel_perf says that it is not"
echo fine
