// What a launcher (torchrun, Open MPI's mpirun, Slurm's srun) says about this process in its environment. Value type.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace trestle {

// A snapshot of environment variables; tests make their own. process_environment() (base/config.h) takes the process's.
using Environment = std::map<std::string, std::string, std::less<>>;

struct Launcher {
  std::string source;  // "torchrun", "Open MPI", "Slurm"; empty: not started by one that is known
  std::optional<int64_t> rank;
  std::optional<int64_t> world_size;
  std::optional<int64_t> local_rank;
  std::string
      master_address;  // MASTER_ADDR, or what can be concluded: first node of a Slurm step, 127.0.0.1 if all are local
  std::optional<uint16_t> master_port;  // MASTER_PORT
  std::string job;                      // the launcher's name of the job, the same on all its ranks; may be empty
  // A sentence when the launcher's variables are there but unusable. An error only for a call that needs the launcher:
  // such variables may be left over from something else.
  std::string problem;
};

// Rank and world size come from one and the same launcher, the innermost first: torchrun's, then Open MPI's, then
// Slurm's.
Launcher read_launcher(const Environment& environment);

// "node03" of "node[03-05,9],other".
std::string first_slurm_node(const std::string& node_list);

}  // namespace trestle
