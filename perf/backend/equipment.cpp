#include "perf/backend/equipment.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "perf/backend/nccl_backend.h"
#include "perf/driver/ending.h"
#include "perf/driver/environment.h"

namespace trestle::perf {
namespace {

constexpr int kSharedGpus = 23000;  // NCCL 2.30
constexpr const char* kSharedGpusSwitch = "NCCL_MULTI_RANK_GPU_ENABLE";

std::string nccl_name(const Options& options) {
  return options.nccl_library.empty() ? kNcclName : options.nccl_library;
}

// With NVIDIA's library, buffers are memory of GPUs.
std::string find_nccl(const Options& options, Equipment& equipment) {
  LoadedNccl loaded = load_nccl(nccl_name(options));
  if (!loaded.library) return "--backend nccl: " + loaded.problem;
  equipment.nccl = loaded.library;
  if (equipment.nccl->takes_host_memory) return "";
  const std::string takes = "'" + nccl_name(options) + "' takes memory of GPUs only";
  if (options.location == Location::kHost) return "--location host: " + takes;
  if (options.graphs) return "-G: CUDA graphs are not measured yet, not of NCCL either";
  FoundGpus found = find_gpus();
  if (!found.gpus) return "--backend nccl: " + takes + ", and " + found.problem;
  equipment.gpus = std::move(found.gpus);
  return "";
}

// The index of the first GPU that this program uses; -1: the variable cannot be read.
int first_gpu(int count) {
  const std::string text = test_variable("DEVICE");
  if (text.empty()) return 0;
  char* end = nullptr;
  const long index = std::strtol(text.c_str(), &end, 10);
  return *end == '\0' && index >= 0 && index < count ? static_cast<int>(index) : -1;
}

std::string find_all(const Options& options, Equipment& equipment) {
  if (options.location == Location::kDevice) {
    const FoundGpus found = find_gpus();
    if (!found.gpus) return "--location device: " + found.problem;
    return "--location device: Trestle's collectives take host memory only so far";
  }
  const std::string problem = options.compare_nccl ? find_nccl(options, equipment) : "";
  if (!problem.empty() || !equipment.gpus) return problem;
  const int count = equipment.gpus->count();
  if (first_gpu(count) < 0) {
    return "TRESTLE_TESTS_DEVICE is the index of a GPU below " + std::to_string(count) + ", not '" +
           test_variable("DEVICE") + "'";
  }
  return "";
}

// "ranks 0 and 1 are on GPU 0000:3b:00.0 of host a"; "": no two ranks share a GPU.
std::string shared_gpu(Ranks& ranks, const std::vector<std::unique_ptr<Gpu>>& gpus) {
  std::vector<std::string> mine;
  for (const auto& gpu : gpus) mine.push_back(gpu->info().pci + " of host " + host_name());
  const std::vector<std::string> all = ranks.gather(mine);
  std::map<std::string, size_t> first;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto [other, is_new] = first.emplace(all[rank], rank);
    if (!is_new) {
      return "ranks " + std::to_string(other->second) + " and " + std::to_string(rank) + " are on GPU " + all[rank];
    }
  }
  return "";
}

// Why NCCL refuses ranks that share a GPU; "": it does not.
std::string refuses_sharing(Ranks& ranks, const NcclLibrary& nccl) {
  const char* const value = std::getenv(kSharedGpusSwitch);
  const bool here = value != nullptr && std::atoi(value) != 0;
  const bool everywhere = ranks.combine(here ? 1 : 0, Combine::kMin) > 0;
  if (nccl.version < kSharedGpus) {
    return "NCCL " + nccl_version_text(nccl.version) + " takes one rank per GPU (2.30 has a switch for more)";
  }
  return everywhere ? "" : std::string("NCCL takes that only with ") + kSharedGpusSwitch + "=1";
}

}  // namespace

Equipment find_equipment(const Options& options) {
  Equipment equipment;
  equipment.problem = find_all(options, equipment);
  return equipment;
}

Compared make_compared(Ranks& ranks, const Options& options, const Equipment& equipment, int local_rank,
                       int local_ranks) {
  Compared compared;
  if (!equipment.nccl) return compared;
  const NcclLibrary& nccl = *equipment.nccl;
  std::vector<std::unique_ptr<Gpu>> gpus;
  if (equipment.gpus) {
    const int count = equipment.gpus->count(), first = first_gpu(count);
    for (size_t i = 0; i < ranks.states().size(); ++i) {
      gpus.push_back(equipment.gpus->open((first + local_rank + static_cast<int>(i)) % count));
    }
    const int sharing = (local_ranks + count - 1) / count;
    for (const auto& gpu : gpus) {
      const double each = static_cast<double>(gpu->info().bytes) * 0.7 / sharing / 2;
      compared.most_bytes = std::min(compared.most_bytes, static_cast<size_t>(each));
    }
    const std::string shared = shared_gpu(ranks, gpus);
    const std::string refusal = shared.empty() ? "" : refuses_sharing(ranks, nccl);
    if (!refusal.empty()) {
      compared.remarks.push_back("NCCL: not compared, because " + shared + ", and " + refusal);
      return compared;
    }
  }
  const std::string place =
      gpus.empty() ? "host memory"
                   : "memory of GPU " + gpus.front()->info().pci + ", " + gpus.front()->info().name + " (rank 0)";
  compared.remarks.push_back("NCCL: '" + nccl.name + "', " + nccl_version_text(nccl.version) + ", buffers in " + place);
  if (!gpus.empty()) {
    compared.remarks.push_back("Trestle's buffers are host memory: so far its collectives take no other");
  }
  auto backend = std::make_unique<NcclBackend>(ranks, options, nccl, std::move(gpus));
  for (const std::string& remark : backend->remarks()) compared.remarks.push_back(remark);
  compared.backend = std::move(backend);
  return compared;
}

}  // namespace trestle::perf
