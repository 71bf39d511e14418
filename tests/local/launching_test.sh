#!/usr/bin/env bash
# launching_test.sh CASE SOURCE_FOLDER BUILD_FOLDER COMPILER SANITIZERS: runs the commands of docs/launching.md
# unchanged, each under its launcher, and checks the statements of the page. Cases: alone, kubernetes, openmpi, mpich,
# slurm. Exits with 77 and a reason if the launcher is not installed. As root everything runs in separate namespaces
# (processes, network), so that nothing is left behind and all ports are free.
set -euo pipefail
case_name=$1 source_folder=$2 build_folder=$3 compiler=$4 sanitizers=$5

skip() {
  echo "skipped: $1"
  exit 77
}

fail() {
  echo "$1" >&2
  if [[ -f "${work:-}/slurmd.log" ]]; then grep error "$work/slurmd.log" | tail -n 20 >&2 || true; fi
  exit 1
}

if [[ $EUID == 0 && -z "${LAUNCHING_TEST_ISOLATED:-}" ]] && unshare --mount --net --pid --fork true 2>/dev/null; then
  LAUNCHING_TEST_ISOLATED=yes exec unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi

work=$(mktemp -d /tmp/trestle-launching-XXXXXX)  # short, because sockets of launchers lie below it
daemons=()
finish() {
  local pid
  for pid in "${daemons[@]}"; do
    kill "$pid" 2>/dev/null || true
  done
  for pid in "${daemons[@]}"; do
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap finish EXIT

if [[ -n "${LAUNCHING_TEST_ISOLATED:-}" ]]; then
  ip link set lo up
  ip link add trestle0 type veth peer name trestle1  # Slurm's daemons cannot resolve names if there is only loopback
  ip address add 192.0.2.1/24 dev trestle0
  ip link set trestle0 up
  ip link set trestle1 up
  echo "127.0.0.1 localhost $(hostname) trainer-0.trainer" >"$work/hosts"
  mount --bind "$work/hosts" /etc/hosts
fi

# Removes the variables of a job that runs this test.
unset "${!SLURM_@}" "${!PMI_@}" "${!PMIX_@}" "${!PRTE_@}" "${!OMPI_@}" MPI_LOCALRANKID MPI_LOCALNRANKS TORCHELASTIC_RUN_ID
unset MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE TRESTLE_SECRET TRESTLE_COMM_ID TRESTLE_STORE
export TMPDIR=$work TRESTLE_TIMEOUT=100s
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
page=$source_folder/docs/launching.md

# compile COMPILER SOURCE NAME: a program beside the others.
compile() {
  local flags=(-std=c99 -Wall -Wextra -Werror "-I$source_folder/include")
  if [[ -n "$sanitizers" ]]; then
    flags+=("-fsanitize=$sanitizers")
    if [[ "$compiler" == *clang* ]]; then
      flags+=(-fsanitize-link-c++-runtime -lstdc++)  # the library needs the C++ runtime
    fi
  fi
  "$1" "${flags[@]}" "$2" "-L$build_folder" -ltrestle "-Wl,-rpath,$build_folder" -o "$work/$3"
}

# block HEADING: the commands of that section.
block() {
  awk -v heading="## $1" '$0 == heading { on = 1; next } /^## / { on = 0 }
    on && /^```sh$/ { code = 1; next } code && /^```$/ { exit } code { print }' "$page"
}

# The output has exactly these lines of ranks, in any order, after any prefix.
expect_ranks() { # FILE RANKS WORD
  local rank
  for ((rank = 0; rank < $2; ++rank)); do echo "rank $rank of $2: $3"; done >"$work/expected"
  if ! grep -oE "rank [0-9]+ of [0-9]+: [0-9a-z]+\$" "$1" | sort -V | diff - "$work/expected"; then
    cat "$1" >&2
    fail "that is not what $2 ranks print"
  fi
}

# try RANKS WORD COMMAND...: the command succeeds and all ranks have printed the word.
try() {
  local ranks=$1 word=$2 status=0
  shift 2
  echo "+ $*"
  (cd "$work" && timeout 150 "$@" </dev/null >"$work/out" 2>&1) || status=$?
  if ((status != 0)); then
    cat "$work/out" >&2
    fail "ended with $status: $*"
  fi
  expect_ranks "$work/out" "$ranks" "$word"
}

try_section() { # HEADING
  local commands command
  commands=$(block "$1")
  [[ -n "$commands" ]] || fail "docs/launching.md has no commands below '## $1'"
  while IFS= read -r command; do
    try 4 10 bash -c "$command"
  done <<<"$commands"
}

# Makes commands that search for `mpirun` find this one.
provide_mpirun() {
  mkdir -p "$work/bin"
  printf '#!/bin/sh\nexec %s "$@"\n' "$1" >"$work/bin/mpirun"
  chmod +x "$work/bin/mpirun"
  export PATH=$work/bin:$PATH
}

# Tests for every launcher with an exchange. The arguments start four ranks.
try_exchange() {
  local status=0
  try 4 several "$@" ./ranks several
  try 4 exit "$@" ./ranks exit
  TRESTLE_DEBUG=INFO try 4 10 "$@" ./program
  grep -q "the launcher's processes meet at .* exchanged over PMI" "$work/out" || fail "nothing was exchanged: $(cat "$work/out")"
  TRESTLE_DEBUG=INFO MASTER_ADDR=127.0.0.1 MASTER_PORT=29555 try 4 10 "$@" ./program
  if grep -q "exchanged over" "$work/out"; then fail "MASTER_ADDR must come first: $(cat "$work/out")"; fi
  echo "+ $* ./ranks missing"
  (cd "$work" && TRESTLE_TIMEOUT=2s timeout 100 "$@" ./ranks missing </dev/null >"$work/out" 2>&1) || status=$?
  if ((status == 0)) || ! grep -qE "not all processes of the job came to .*MASTER_ADDR" "$work/out"; then
    cat "$work/out" >&2
    fail "a rank that does not come must be said, not only end with $status"
  fi
}

# try_mpi COMPILER COMMAND...: runs MPI and Trestle in one process.
try_mpi() {
  local mpi_compiler=$1 mode
  shift
  if ! command -v "$mpi_compiler" >/dev/null || [[ -n "$sanitizers" ]]; then
    echo "not tried: MPI in the same process (no $mpi_compiler, or a build with sanitizers)"
    return
  fi
  compile "$mpi_compiler" "$source_folder/tests/local/launching_mpi.c" with_mpi
  for mode in first later never; do try 4 "$mode" "$@" ./with_mpi "$mode"; done
}

# shellcheck disable=SC2016 # the backquotes are the ones in the README
sed -n '/^```c$/,/^```$/p' "$source_folder/README.md" | sed '/^```/d' >"$work/program.c"
compile "$compiler" "$work/program.c" program
compile "$compiler" "$source_folder/tests/local/launching_ranks.c" ranks

alone_case() {
  local sections expected
  sections=$(awk '/^## / { heading = substr($0, 4) } /^```sh$/ { print heading }' "$page")
  expected=$(printf '%s\n' Alone "trestle run" torchrun "Open MPI's mpirun" "MPICH's and Intel MPI's mpirun" srun \
    "srun with PMIx or PMI-2" Kubernetes "Your own launcher")
  [[ "$sections" == "$expected" ]] || fail "docs/launching.md has sections with commands that no case tries: $sections"
  try 1 1 bash -c "$(block Alone)"
  PATH=$build_folder:$PATH try_section "trestle run"
  try 4 10 bash -c "$(block "Your own launcher")"
  if command -v torchrun >/dev/null; then try_section torchrun; else echo "not tried: torchrun is not installed"; fi
}

kubernetes_case() {
  [[ -n "${LAUNCHING_TEST_ISOLATED:-}" ]] || skip "the pods' host names can be given to this test alone only where it may have namespaces of its own (as root)"
  local index pids=() script
  script=$(block Kubernetes)
  for index in 0 1 2 3; do
    (cd "$work" && JOB_COMPLETION_INDEX=$index timeout 150 sh -c "$script" >"$work/out.$index" 2>&1) &
    pids+=($!)
  done
  for index in 0 1 2 3; do wait "${pids[index]}" || fail "rank $index: $(cat "$work/out.$index")"; done
  cat "$work"/out.? >"$work/out"
  expect_ranks "$work/out" 4 10
}

openmpi_case() {
  command -v mpirun.openmpi >/dev/null || skip "Open MPI's mpirun is not installed (apt-get install openmpi-bin)"
  provide_mpirun mpirun.openmpi
  try_section "Open MPI's mpirun"
  grep -q "PMIX_FOUND:INTERNAL=1" "$build_folder/CMakeCache.txt" || skip "the exchange over PMIx: libpmix-dev was missing"
  try_exchange mpirun -n 4
  try_mpi mpicc.openmpi mpirun -n 4
  try_without_libpmix
}

# The ranks find no libpmix where mpirun has it.
try_without_libpmix() {
  local library
  library=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | awk '/libpmix\.so\.2 / && found == "" { found = $NF } END { print found }')
  if [[ -z "${LAUNCHING_TEST_ISOLATED:-}" || -z "$library" ]]; then
    echo "not tried: ranks without libpmix (only root can hide it)"
    return
  fi
  export hidden
  hidden=$(realpath "$library")
  # shellcheck disable=SC2016 # for the shell of the rank
  TRESTLE_DEBUG=INFO try 4 10 mpirun -n 4 unshare --mount sh -c 'mount --bind /dev/null "$hidden" && exec ./program'
  grep -q "meet at 127.0.0.1 and not through the launcher: PMIx cannot be loaded" "$work/out" || fail "no fallback: $(cat "$work/out")"
}

mpich_case() {
  command -v mpirun.mpich >/dev/null || skip "MPICH's mpirun is not installed (apt-get install mpich)"
  provide_mpirun mpirun.mpich
  try_section "MPICH's and Intel MPI's mpirun"
  try_exchange mpirun -n 4
  # Hydra sees two hosts and starts a proxy for each.
  try 4 several mpirun -launcher fork -hosts localhost,127.0.0.1 -ppn 2 -n 4 ./ranks several
  # shellcheck disable=SC2016 # for the shell of the rank
  try 4 10 mpirun -pmi-port -n 4 env WORLD_SIZE=4 sh -c 'RANK=$PMI_ID exec ./program'
  try_mpi mpicc.mpich mpirun -n 4
}

# One node, this host, with separate ports and folders. Everything runs as this user and without munge. TmpFS: the PMIx
# plugin names its folders after the step alone, and steps count from 1 in every run. In /tmp they would meet those of
# another run, and the step would not start.
start_slurm() {
  local port=$((20000 + RANDOM % 20000)) host
  host=$(hostname -s)
  mkdir "$work/state" "$work/spool"
  cat >"$work/slurm.conf" <<CONF
ClusterName=launching
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SrunPortRange=$((port + 2))-$((port + 200))
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
TmpFS=$work
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
  export SLURM_CONF=$work/slurm.conf
  slurmctld -D -f "$SLURM_CONF" >"$work/slurmctld.out" 2>&1 &
  daemons+=($!)
  slurmd -D -f "$SLURM_CONF" >"$work/slurmd.out" 2>&1 &
  daemons+=($!)
  # The first step waits until the node is available.
  if ! timeout 100 srun --immediate=90 -n 1 true >"$work/out" 2>&1; then
    tail -n 20 "$work/out" "$work"/slurm*.log "$work"/slurm*.out >&2
    fail "Slurm's daemons did not start a step"
  fi
}

slurm_case() {
  local program
  for program in srun slurmctld slurmd; do
    command -v "$program" >/dev/null || [[ -x "/usr/sbin/$program" ]] ||
      skip "$program is not installed (apt-get install slurmctld slurmd slurm-client)"
  done
  PATH=$PATH:/usr/sbin
  start_slurm
  try_section srun
  grep -q "PMIX_FOUND:INTERNAL=1" "$build_folder/CMakeCache.txt" || skip "the exchange over PMIx: libpmix-dev was missing"
  [[ "$(srun --mpi=list 2>&1)" == *pmix* ]] || skip "this Slurm has no PMIx"
  try_section "srun with PMIx or PMI-2"
  try_exchange srun --kill-on-bad-exit=1 --mpi=pmi2 -n 4
  try_exchange srun --kill-on-bad-exit=1 --mpi=pmix -n 4
}

"${case_name}_case"
