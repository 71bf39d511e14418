#!/usr/bin/env bash
# The rendezvous and the control mesh run over the rails, which the topology file names. The first rail, over which they
# began, is set down and loses everything silently while a job runs: the job goes on, its sums are right, and its
# communicator can be split. The same at moments that a seed chooses, while communicators are split and made anew. When
# the last rail is gone, or a rank is killed, the job ends with the sentence that says so.
# Usage: control_rails_test.sh SOURCE_DIR BUILD_DIR. Exits with 77 and a reason if no lab is possible. LAB_SEED (1)
# chooses other moments, LAB_LOSSES (6) how many there are in each of the two jobs.
set -euo pipefail
# shellcheck source=tests/lab/in_lab.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_lab.sh"
seed=${LAB_SEED:-1}
name+=": seed $seed"
losses=${LAB_LOSSES:-6}

# start ARGUMENTS...: a job that reduces 1 MiB again and again.
start() {
  : >"$files/out"
  "$lab" ranks -- "$LAB_BUILD/perf/all_reduce_perf" -b 1M -e 1M -w 2 "$@" >"$files/out" 2>&1 &
  job=$!
}

# Each of four ranks has four ends of links: two to the ranks above it, two to those below.
survives() {
  start -n 20 -N 20 -c 1
  until_said '^\[0\] *1048576' 1
  "$lab" rail 1 down
  until_said 'control: connection with rank .* moved from d1r1 to d1r2' 16
  "$lab" rail 1 up
  until_said 'rail d1r1 .* is back' 4
  "$lab" rail 2 drop
  until_said 'control: connection with rank .* moved from d1r2 to d1r1' 16
  "$lab" rail 2 pass
  wait "$job" || fail "the job failed"
  grep -q '# Out of bounds values : 0 OK' "$files/out" || fail "a sum is wrong"
}

# splits COUNT: the job has split so many communicators more.
splits() {
  local seen
  seen=$(grep -c 'one more split' "$files/out" || true)
  until_said 'one more split' $((seen + $1))
}

# split_again ARGUMENTS...: a job that splits all the time.
split_again() {
  : >"$files/out"
  rm -f "$files/enough"
  "$lab" ranks -- "$LAB_BUILD/tests/split_ranks" "$files/enough" "$@" >"$files/out" 2>&1 &
  job=$!
  splits 2
}

enough_splits() {
  touch "$files/enough"
  wait "$job" || fail "the job that splits failed"
}

splits_over_what_is_left() {
  split_again
  "$lab" rail 1 drop
  until_said 'control: connection with rank .* moved from d1r1 to d1r2' 16
  splits 5
  "$lab" rail 1 pass
  "$lab" rail 1 down
  splits 5
  "$lab" rail 1 up
  splits 5
  enough_splits
}

# A moment within a second.
sometime() {
  sleep "0.$(printf %03d $((RANDOM % 1000)))"
}

# lose_and_heal RAIL WAY COMMAND...: does that while the rail is lost.
lose_and_heal() {
  local rail=$1 verb=$2 heal=pass
  [[ $verb == drop ]] || heal=up
  sometime
  "$lab" rail "$rail" "$verb"
  "${@:3}"
  "$lab" rail "$rail" "$heal"
}

# One rail stays, so the job goes on while the other one is lost.
splits_while_rails_are_lost() {
  local rail=$((1 + RANDOM % 2)) ways=(down drop) i
  split_again
  for ((i = 0; i < losses; ++i)); do lose_and_heal "$rail" "${ways[RANDOM % 2]}" splits 2; done
  enough_splits
}

# The ranks begin at an address on the first rail. Without its interface that address does not exist, and while it loses
# everything they wait.
makes_communicators_while_rails_are_lost() {
  local rail ways i
  for rail in 1 2; do
    ways=(drop)
    ((rail == 1)) || ways=(down drop)
    split_again 2
    for ((i = 0; i < losses; ++i)); do
      lose_and_heal "$rail" "${ways[RANDOM % ${#ways[@]}]}" sometime
      splits 3
    done
    enough_splits
  done
}

# ends_by COMMAND: does that to a running job, which fails then.
ends_by() {
  local before
  before=$("$lab" sent)
  start -n 1000000
  until (($("$lab" sent) > before + 20000000)); do
    kill -0 "$job" 2>/dev/null || fail "the job ended too early"
  done
  "$@"
  if wait "$job"; then fail "the job did not fail"; fi
}

lose_all_rails() {
  "$lab" rail 1 down 1 2
  "$lab" rail 2 down 1 2
}

# The only program of that name in the host's network namespace.
kill_rank_2() {
  "$lab" exec 2 -- bash -c '
    for process in /proc/[0-9]*; do
      [[ "$(readlink "$process/ns/net")" == "$(readlink /proc/self/ns/net)" ]] || continue
      [[ "$(<"$process/comm")" != all_reduce_perf ]] || kill -KILL "${process#/proc/}"
    done' 2>/dev/null
}

if [[ "${3:-}" == --inside ]]; then
  RANDOM=$seed
  step() {
    echo "$*" >>"$files/steps"
    "$@"
  }
  # The rails are those of the lab's topology file.
  export LAB_CONTROL=rails TRESTLE_RAIL_TIMEOUT=500ms TRESTLE_HEARTBEAT=3s TRESTLE_DEBUG=WARN
  step survives
  step splits_over_what_is_left
  step splits_while_rails_are_lost
  step makes_communicators_while_rails_are_lost
  step ends_by kill_rank_2
  grep -q 'rank 2 (host lab-h2, pid [0-9]*) died' "$files/out" || fail "the killed rank is not named"
  step ends_by lose_all_rails
  grep -q 'd1r1: .* ago; d1r2: .* ago' "$files/out" || fail "the lost rails are not named"
  exit 0
fi

require_lab
inside 4@200+100
echo "control_rails_test: passed"
