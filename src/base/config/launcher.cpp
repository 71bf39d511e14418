#include "base/config/launcher.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text/value_text.h"

namespace trestle {
namespace {

struct Names {
  const char* source;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_size;
  const char* job;
  const char* needed;  // a variable that must be set too for this launcher to count; nullptr: none
};

constexpr std::array<Names, 5> kLaunchers = {{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", nullptr},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", nullptr},
    // Before Slurm: inside an allocation Hydra starts its processes with srun, so they inherit srun's variables.
    {"Hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, "MPI_LOCALRANKID"},
    // A batch script has SLURM_PROCID and SLURM_NTASKS as well, though it is one process. Only srun sets the node list
    // of a step.
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID", "SLURM_STEP_NODELIST"},
    {"PMI", "PMI_RANK", "PMI_SIZE", nullptr, nullptr, nullptr, nullptr},
}};

const std::string* find(const Environment& environment, const char* name) {
  if (name == nullptr) return nullptr;
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

// The variable as an integer in [low, high]. nullopt if it is not set; nullopt and a problem if it is anything else.
std::optional<int64_t> integer(const Environment& environment, const char* name, int64_t low, int64_t high,
                               std::string& problem) {
  const std::string* text = find(environment, name);
  if (text == nullptr) return std::nullopt;
  const Result<int64_t> value = parse_integer(*text);
  if (value.ok() && value.value() >= low && value.value() <= high) return value.value();
  problem = std::string(name) + "=" + *text + ": must be an integer from " + std::to_string(low) + " to " +
            std::to_string(high);
  return std::nullopt;
}

// "none" is what torchrun calls a job that the user has not named. A Slurm job may run several steps at a time.
std::string job_of(const Environment& environment, const Names& names) {
  const std::string* const job = find(environment, names.job);
  if (job == nullptr || (names.source == kLaunchers[0].source && *job == "none")) return {};
  const std::string* const step = find(environment, "SLURM_STEP_ID");
  const bool has_steps = std::string_view(names.source) == "Slurm" && step != nullptr;
  return has_steps ? *job + "." + *step : *job;
}

void read_address(const Environment& environment, bool all_local, Launcher& launcher) {
  const auto port = integer(environment, "MASTER_PORT", 1, 65535, launcher.problem);
  if (port) launcher.master_port = static_cast<uint16_t>(*port);
  if (const std::string* address = find(environment, "MASTER_ADDR")) {
    launcher.master_address = *address;
    return;
  }
  launcher.address_concluded = true;
  if (all_local) {
    launcher.master_address = "127.0.0.1";
  } else if (launcher.source == "Slurm") {
    launcher.master_address = first_slurm_node(*find(environment, "SLURM_STEP_NODELIST"));
  }
}

bool pmix_serves(const Environment& environment) {
  constexpr std::string_view kServer = "PMIX_SERVER_URI";  // followed by a version
  const auto server = environment.lower_bound(kServer);
  return server != environment.end() && server->first.starts_with(kServer) &&
         find(environment, "PMIX_NAMESPACE") != nullptr && find(environment, "PMIX_RANK") != nullptr;
}

// The space of the launcher that started this process, not of a launcher around it. Hydra's processes inherit PMIx's
// variables if srun started Hydra, and Open MPI's processes inherit Hydra's.
LauncherSpace read_space(const Environment& environment, std::string& problem) {
  LauncherSpace space;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const bool hydra = find(environment, "MPI_LOCALRANKID") != nullptr && !find(environment, "OMPI_COMM_WORLD_RANK");
  const std::string* port = find(environment, "PMI_PORT");
  const char* const pmi_rank = find(environment, "PMI_RANK") != nullptr ? "PMI_RANK" : "PMI_ID";
  const auto descriptor = integer(environment, "PMI_FD", 0, kMost, problem);
  const bool pmi = (descriptor || port != nullptr) && find(environment, pmi_rank) != nullptr;
  if (pmix_serves(environment) && !(pmi && hydra)) {
    space.kind = LauncherSpace::Kind::kPmix;
    space.rank = integer(environment, "PMIX_RANK", 0, kMost, problem).value_or(0);
  } else if (pmi) {
    space.kind = LauncherSpace::Kind::kPmi;
    space.rank = integer(environment, pmi_rank, 0, kMost, problem).value_or(0);
    space.pmi_fd = descriptor;
    if (!descriptor) space.pmi_port = *port;
  }
  return space;
}

// For a process that no row of the table describes: which of rank and size is missing.
std::string half_told(const Environment& environment) {
  constexpr std::array<std::array<const char*, 2>, 5> kPairs = {{{"RANK", "WORLD_SIZE"},
                                                                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                                 {"PMI_RANK", "PMI_SIZE"},
                                                                 {"PMI_ID", "PMI_SIZE"},
                                                                 {"PMIX_RANK", "WORLD_SIZE"}}};
  for (const auto& [rank, size] : kPairs) {
    const bool has_rank = find(environment, rank) != nullptr;
    if (has_rank == (find(environment, size) != nullptr)) continue;
    const char* const there = has_rank ? rank : size;
    return std::string(there) + "=" + *find(environment, there) + " is set, " + (has_rank ? size : rank) +
           " is not: a process of a job needs both its rank and the number of ranks; set RANK and WORLD_SIZE (a "
           "process that was started alone has none of these variables)";
  }
  return {};
}

}  // namespace

std::string first_slurm_node(const std::string& node_list) {
  const size_t open = node_list.find('[');
  const size_t comma = node_list.find(',');
  if (open == std::string::npos || comma < open) return node_list.substr(0, comma);
  const size_t close = std::min(node_list.find(']', open), node_list.size());
  const size_t number_end = std::min(node_list.find_first_of(",-]", open), node_list.size());
  std::string name = node_list.substr(0, open) + node_list.substr(open + 1, number_end - open - 1);
  if (close < node_list.size()) {
    const size_t suffix_end = std::min(node_list.find(',', close), node_list.size());
    name += node_list.substr(close + 1, suffix_end - close - 1);
  }
  return name;
}

Launcher read_launcher(const Environment& environment) {
  constexpr int64_t kMostRanks = std::numeric_limits<int32_t>::max();
  Launcher launcher;
  bool all_local = false;
  for (const Names& names : kLaunchers) {
    if (find(environment, names.rank) == nullptr || find(environment, names.world_size) == nullptr) continue;
    if (names.needed != nullptr && find(environment, names.needed) == nullptr) continue;
    launcher.source = names.source;
    launcher.world_size = integer(environment, names.world_size, 1, kMostRanks, launcher.problem);
    launcher.rank = integer(environment, names.rank, 0, launcher.world_size.value_or(kMostRanks) - 1, launcher.problem);
    launcher.local_rank = integer(environment, names.local_rank, 0, kMostRanks, launcher.problem);
    const auto local_size = integer(environment, names.local_size, 1, kMostRanks, launcher.problem);
    all_local = local_size && local_size == launcher.world_size;
    launcher.job = job_of(environment, names);
    break;
  }
  if (launcher.source.empty()) launcher.incomplete = half_told(environment);
  read_address(environment, all_local, launcher);
  launcher.space = read_space(environment, launcher.problem);
  return launcher;
}

}  // namespace trestle
