#include "perf/backend/equipment.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "perf/backend/nccl_backend.h"
#include "perf/driver/ending.h"
#include "perf/driver/environment.h"
#include "perf/driver/memory.h"

namespace trestle::perf {
namespace {

constexpr int kSharedGpus = 23000;  // NCCL 2.30
constexpr const char* kSharedGpusSwitch = "NCCL_MULTI_RANK_GPU_ENABLE";

std::string nccl_name(const Options& options) {
  return options.nccl_library.empty() ? kNcclName : options.nccl_library;
}

std::string device_variable() {
  const char* const text = std::getenv("TRESTLE_DEVICE");
  return text == nullptr || std::string(text) == "-1" ? "" : text;
}

// Why the calls of Trestle's own libnccl return before they are complete although the buffers lie in host memory;
// "": they do not.
std::string calls_are_on_streams(const Options& options) {
  if (options.location != Location::kHost || device_variable().empty()) return "";
  return "--location host: TRESTLE_DEVICE gives the ranks of '" + nccl_name(options) +
         "' a GPU, so its calls are ordered on CUDA streams, which this run has none of: leave it out";
}

// Loads the library that Trestle is compared with. Returns why it cannot be used, or "". NVIDIA's library takes memory
// of GPUs only.
std::string find_nccl(const Options& options, Equipment& equipment) {
  LoadedNccl loaded = load_nccl(nccl_name(options));
  if (!loaded.library) return "--backend nccl: " + loaded.problem;
  equipment.nccl = loaded.library;
  const std::string takes = "'" + nccl_name(options) + "' takes memory of GPUs only";
  if (equipment.nccl->takes_host_memory) return calls_are_on_streams(options);
  return options.location == Location::kHost ? "--location host: " + takes : "";
}

// The option or library that asks for GPUs, as the beginning of a sentence; "": none does.
std::string who_asks(const Options& options, const Equipment& equipment) {
  if (options.location == Location::kDevice) return "--location device: ";
  if (equipment.nccl && !equipment.nccl->takes_host_memory) {
    return "--backend nccl: '" + nccl_name(options) + "' takes memory of GPUs only, and ";
  }
  return options.location == Location::kAuto && !device_variable().empty() ? "TRESTLE_DEVICE: " : "";
}

// Reads the index of one of `count` GPUs; -1: the text is no such index. An empty text means the first GPU.
int gpu_index(const std::string& text, int count) {
  if (text.empty()) return 0;
  char* end = nullptr;
  const long index = std::strtol(text.c_str(), &end, 10);
  return *end == '\0' && index >= 0 && index < count ? static_cast<int>(index) : -1;
}

// The library's variable TRESTLE_DEVICE (the GPU of a process) overrides TRESTLE_TESTS_DEVICE (the GPU of a host's
// first rank). Returns the error as a sentence, or "".
std::string choose_gpus(Equipment& equipment) {
  const int count = equipment.gpus->count();
  const std::string device = device_variable();
  const std::string text = device.empty() ? test_variable("DEVICE") : device;
  equipment.all_on_first = !device.empty();
  equipment.first_gpu = gpu_index(text, count);
  if (equipment.first_gpu >= 0) return "";
  return (device.empty() ? "TRESTLE_TESTS_DEVICE" : "TRESTLE_DEVICE") +
         (" is the index of a GPU below " + std::to_string(count)) + ", not '" + text + "'";
}

std::string find_all(const Options& options, Equipment& equipment) {
  const std::string problem = options.compare_nccl ? find_nccl(options, equipment) : "";
  if (!problem.empty()) return problem;
  const std::string asks = who_asks(options, equipment);
  if (asks.empty()) return "";
  FoundGpus found = find_gpus();
  if (!found.gpus) return asks + found.problem;
  equipment.gpus = std::move(found.gpus);
  return choose_gpus(equipment);
}

// Trestle's own libnccl takes any memory, so its buffers lie where Trestle's do.
bool is_on_gpus(const Ranks& ranks, const NcclLibrary& nccl) {
  return !nccl.takes_host_memory || ranks.on_gpus();
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

int Equipment::gpu_of(int local_rank) const {
  return all_on_first ? first_gpu : (first_gpu + local_rank) % gpus->count();
}

std::vector<std::unique_ptr<Gpu>> open_gpus(const Equipment& equipment, int local_rank, size_t count) {
  std::vector<std::unique_ptr<Gpu>> gpus;
  if (!equipment.gpus) return gpus;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    gpus.push_back(equipment.gpus->open(equipment.gpu_of(local_rank + i)));
  }
  return gpus;
}

Compared make_compared(Ranks& ranks, const Options& options, const Equipment& equipment, int local_rank) {
  Compared compared;
  if (!equipment.nccl) return compared;
  const NcclLibrary& nccl = *equipment.nccl;
  std::vector<std::unique_ptr<Gpu>> gpus;
  if (is_on_gpus(ranks, nccl)) gpus = open_gpus(equipment, local_rank, ranks.states().size());
  if (!nccl.takes_host_memory) {
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
  auto backend = std::make_unique<NcclBackend>(ranks, options, nccl, std::move(gpus));
  for (const std::string& remark : backend->remarks()) compared.remarks.push_back(remark);
  compared.backend = std::move(backend);
  return compared;
}

// Verification data is made in host memory, so a rank needs room for at least one buffer there.
Room room_for_buffers(const Ranks& ranks, const Equipment& equipment, const Compared& compared, int local_ranks) {
  const bool beside = compared.backend != nullptr;
  const bool nccl_on_gpus = beside && is_on_gpus(ranks, *equipment.nccl);
  const int on_gpus = (ranks.on_gpus() ? 2 : 0) + (nccl_on_gpus ? 2 : 0);
  Room room{beside ? 4 : 2, 0};
  const int in_host_memory = std::max(1, room.buffers - on_gpus);
  room.bytes = static_cast<double>(available_memory_bytes()) * 0.7 / local_ranks / in_host_memory;
  if (on_gpus == 0) return room;
  const int gpus = equipment.all_on_first ? 1 : equipment.gpus->count();
  const int sharing = (local_ranks + gpus - 1) / gpus;
  for (const RankState& state : ranks.states()) {
    const double each = static_cast<double>(state.gpu->info().bytes) * 0.7 / sharing / on_gpus;
    room.bytes = std::min(room.bytes, each);
  }
  return room;
}

}  // namespace trestle::perf
