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
  int64_t rank = 0;               // this process's in the space: PMI_RANK, PMI_ID or PMIX_RANK
  std::optional<int64_t> pmi_fd;  // PMI_FD: the connection to the launcher
  std::string pmi_port;           // PMI_PORT, host:port of the launcher, where there is no PMI_FD
};

struct Launcher {
  std::string source;  // "torchrun", "Open MPI", "Hydra", "Slurm", "PMI"; empty: not started by one that is known
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  std::optional<int64_t> local_rank;
  // MASTER_ADDR, or what can be concluded: first node of a Slurm step, 127.0.0.1 if all are local
  std::string master_address;
  bool address_concluded = false;       // it is not MASTER_ADDR: `space` is the better way to meet, if there is one
  std::optional<uint16_t> master_port;  // MASTER_PORT
  LauncherSpace space;
  std::string job;  // the launcher's name of the job, the same on all its ranks; may be empty
  // A sentence when the launcher's variables are there but unusable. An error only for a call that needs the launcher:
  // such variables may be left over from something else.
  std::string problem;
  // A sentence when a launcher has started this process and does not say both its rank and the number of ranks. An
  // error only for a call that asks for these two: taking such a process for one that was started alone would give many
  // ranks 0.
  std::string incomplete;
};

// Rank and world size come from one and the same launcher, the innermost first: torchrun's, then Open MPI's, then
// those of MPICH and Intel MPI (both use Hydra), then Slurm's, then those of any other launcher with PMI.
Launcher read_launcher(const Environment& environment);

// "node03" of "node[03-05,9],other".
std::string first_slurm_node(const std::string& node_list);

}  // namespace trestle
