// PretendDevice: stands for a device in tests without a GPU. The addresses that it gives out are of memory that nobody
// may touch: a host path that reads or writes it, or passes it to the kernel, fails at once. Only its work queue
// reaches the bytes, at other addresses, on a thread of its own and after random delays (DelayedQueue). The queue in
// turn touches nothing but this memory, the pinned memory of the same device, and what it reads of devices that it
// reaches: any other address ends the program.
//
// Owned by the test; outlives the engines that use it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "engine/work/device_place.h"

namespace trestle {

class PretendDevice {
 public:
  explicit PretendDevice(int32_t number);
  ~PretendDevice();
  PretendDevice(const PretendDevice&) = delete;
  PretendDevice& operator=(const PretendDevice&) = delete;

  // From now on its queue reads the other one's device memory (if `memory`) and pinned memory. Before any work.
  void reach(PretendDevice& other, bool memory);

  // For an engine. Delays as in DelayedQueue::create().
  DevicePlace place(uint64_t seed, int64_t most_delay_ns);
  int32_t number() const { return number_; }

  // Device memory, aligned to 64. nullptr: there is none.
  std::byte* allocate(uint64_t bytes);
  void free(std::byte* memory);
  // Where the test may touch it, while no work does.
  std::byte* bytes_of(const std::byte* memory) const { return real_ + (memory - guarded_); }
  bool owns(const std::byte* memory, uint64_t bytes) const;
  // Blocks of either kind that were not freed.
  size_t blocks();
  size_t pinned_blocks();

  // Its pinned memory. Ordinary memory, which is noted.
  std::byte* allocate_pinned(uint64_t bytes);
  void free_pinned(std::byte* memory);
  bool is_pinned(const std::byte* memory, uint64_t bytes);

  // Reductions that are submitted from now on stop before they read anything, until the test lets all go on.
  void hold_reductions() { holds_ = true; }
  bool holds_reductions() const { return holds_; }
  static void let_reductions_go_on();
  // Of all devices, how many have stopped.
  static int held_reductions();
  // From now on nobody may read or write its memory: whoever does ends the program.
  void revoke();

  // Where its queue reads [data, data + bytes) of that region, or writes it. Ends the program if it does not reach it.
  std::byte* reached(const std::byte* data, uint64_t bytes, const Region* region, bool writes);

 private:
  static constexpr uint64_t kBytes = uint64_t{256} << 20;  // of addresses; memory is taken when it is touched
  using Blocks = std::map<const std::byte*, uint64_t>;     // by begin: bytes

  struct Reached {
    PretendDevice* device;
    bool memory;
  };
  const int32_t number_;
  std::vector<Reached> reached_;  // other devices
  std::atomic<bool> holds_{false};
  const UniqueFd file_;
  std::byte* guarded_ = nullptr;  // as given out: no access
  std::byte* real_ = nullptr;     // the bytes of guarded_, with access
  Mutex mutex_;
  Blocks device_ TRESTLE_GUARDED_BY(mutex_);
  Blocks pinned_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
