// What a launcher (torchrun, the mpirun of Open MPI, MPICH or Intel MPI, Slurm's srun) says about this process in its
// environment. Value type.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace trestle {

// A snapshot of environment variables; tests make their own. process_environment() (base/config/config.h) takes the
// process's.
using Environment = std::map<std::string, std::string, std::less<>>;

// The launcher's key-value space, through which its processes can tell each other where to meet.
struct LauncherSpace {
  enum class Kind : uint8_t { kNone, kPmi, kPmix };
  Kind kind = Kind::kNone;
  int64_t rank = 0;               // rank of this process in the space: PMI_RANK, PMI_ID or PMIX_RANK
  std::optional<int64_t> pmi_fd;  // PMI_FD: the connection to the launcher
  std::string pmi_port;           // PMI_PORT, host:port of the launcher, if there is no PMI_FD
};

struct Launcher {
  std::string source;  // "torchrun", "Open MPI", "Hydra", "Slurm", "PMI"; empty: no known launcher
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  std::optional<int64_t> local_rank;
  // MASTER_ADDR, or a conclusion: the first node of a Slurm step, 127.0.0.1 if all ranks are local
  std::string master_address;
  bool address_concluded = false;       // it is not MASTER_ADDR: prefer `space`, if there is one
  std::optional<uint16_t> master_port;  // MASTER_PORT
  LauncherSpace space;
  std::string job;  // the launcher's name of the job, equal on all its ranks; may be empty
  // A sentence if the launcher's variables exist but are unusable. An error only for a call that needs the launcher:
  // such variables may be left over from something else.
  std::string problem;
  // A sentence if a launcher has started this process and does not state both its rank and the number of ranks. An
  // error only for a call that asks for these two: treating such processes as started alone would give many ranks 0.
  std::string incomplete;
};

// Rank and world size always come from the same launcher. The innermost is used: torchrun, then Open MPI, then MPICH
// and Intel MPI (both use Hydra), then Slurm, then any other launcher with PMI.
Launcher read_launcher(const Environment& environment);

// "node03" of "node[03-05,9],other".
std::string first_slurm_node(const std::string& node_list);

}  // namespace trestle
