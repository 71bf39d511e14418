#include "comm/setup/board_setup.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "comm/device/opened_devices.h"

namespace trestle {

namespace {

// 64 KiB are two units for each of the threads of so many blocks.
constexpr uint32_t kMostBlocks = 16;
// Kernels of other communicators, and of the program, run there too.
constexpr uint32_t kCapacityShare = 2;

// What the ranks of this process have brought, by job and rank.
struct Brought {
  Mutex mutex;
  std::map<std::pair<std::string, int32_t>, std::weak_ptr<BoardMemory>> memory TRESTLE_GUARDED_BY(mutex);

  static Brought& process() {
    static constinit PerProcess<Brought> brought;
    return brought.get();
  }
};

// Blocks of a launch with which the kernels of all ranks of a device run at the same time; 0: not even with one.
uint32_t blocks_of_rank(uint32_t capacity, int64_t ranks_of_device) {
  return std::min<uint32_t>(kMostBlocks, capacity / kCapacityShare / static_cast<uint32_t>(ranks_of_device));
}

// All devices are asked, so that all ranks agree.
Result<uint32_t> blocks_of_all(const std::vector<int>& devices) {
  uint32_t blocks = kMostBlocks;
  for (const int device : devices) {
    const auto kernels = TRY(TRY(OpenedDevices::process().open(device))->kernels());
    blocks = std::min(blocks, blocks_of_rank(kernels->board_capacity(), std::ranges::count(devices, device)));
  }
  return blocks;
}

}  // namespace

bool BoardSetup::is_possible(const PeerPaths& paths) const {
  if (ranks_ < 2 || ranks_ > static_cast<int32_t>(kernels::kMostBoardRanks) || most_bytes_ == 0) return false;
  for (int32_t r = 0; r < ranks_; ++r) {
    if (!gives_views(paths.to(r))) return false;
  }
  const auto opened = OpenedDevices::process().open(device_);
  return opened.ok() && opened.value()->links().waits_for_words();
}

Status BoardSetup::try_to_bring() {
  Device& device = TRY(OpenedDevices::process().open(device_))->device();
  memory_ = TRY(BoardMemory::create(device, ranks_, most_bytes_));
  Brought& brought = Brought::process();
  const MutexLock lock(brought.mutex);
  std::erase_if(brought.memory, [](const auto& one) { return one.second.expired(); });
  brought.memory[{job_, rank_}] = memory_;
  return {};
}

bool BoardSetup::bring() {
  const Status brought = try_to_bring();
  if (brought.ok()) return true;
  LOG(kWarn, kInit, "rank %d: small collectives on memory of devices go as messages: %s", rank_,
      brought.error().message.c_str());
  return false;
}

Status BoardSetup::make(const std::vector<int>& devices, DevicePlace& place) {
  OpenedDevice* const opened = TRY(OpenedDevices::process().open(device_));
  DeviceBoardConfig config;
  config.rank = rank_;
  config.most_bytes = most_bytes_;
  config.most_blocks = TRY(blocks_of_all(devices));
  if (config.most_blocks == 0) {  // on all ranks
    LOG(kInfo, kInit, "rank %d: small collectives on memory of devices go as messages: a device has too many ranks",
        rank_);
    return {};
  }
  config.keep = [opened](std::shared_ptr<const void> kept) { opened->keep(std::move(kept)); };
  config.let_go = [opened](const std::shared_ptr<const void>& kept) { opened->let_go(kept); };
  {
    Brought& brought = Brought::process();
    const MutexLock lock(brought.mutex);
    for (int32_t r = 0; r < ranks_; ++r) {
      const auto found = brought.memory.find({job_, r});
      auto memory = found == brought.memory.end() ? nullptr : found->second.lock();
      if (memory == nullptr)
        return Error{Code::kRemoteError, "rank " + std::to_string(r) + " has given up while the communicator was made"};
      config.memory.push_back(std::move(memory));
    }
  }
  LOG(kInfo, kInit, "rank %d: collectives of up to %llu bytes on memory of devices are one kernel of each rank", rank_,
      static_cast<unsigned long long>(most_bytes_));
  place.board = TRY(DeviceBoard::create(opened->device(), TRY(opened->kernels()), std::move(config)));
  return {};
}

}  // namespace trestle
