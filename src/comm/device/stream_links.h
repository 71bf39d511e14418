// StreamLinks: the gates and marks of one device, each pair for one stream at a time.
//
// Making or freeing them may wait for all work of the device (device/gate.h), also for a stream that is held for a
// collective, and a thread that waits there may be the one that the collective needs. So the words of many pairs are
// allocated when the device is opened, and nothing is freed. A pair is used again once its old stream has gone past it.
//
// Owned by the opened device; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/gate.h"

namespace trestle {

struct StreamLink {
  std::unique_ptr<Gate> gate;
  std::unique_ptr<Mark> mark;
};

class StreamLinks {
 public:
  // Calls that a driver without words in streams may have ahead of a stream's present place.
  static constexpr uint32_t kMostAheadByEvents = 1024;

  explicit StreamLinks(Device& device) : device_(device), way_(best_way(device)) {}
  StreamLinks(const StreamLinks&) = delete;
  StreamLinks& operator=(const StreamLinks&) = delete;

  // Once, before the others: allocates. Slow.
  Status prepare();
  // Slow if there are no words left, and where the driver has no words in streams.
  Result<std::unique_ptr<StreamLink>> take();
  // A word of its own, for a gate in a graph. Slow if there are none left.
  Result<uint32_t*> take_word();
  void give_word_back(uint32_t* word);  // no graph has it any more
  bool waits_for_words() const { return way_ == GateWay::kWord; }
  // All of the gate's tickets were opened. The stream need not have come to the mark's.
  void give_back(std::unique_ptr<StreamLink> link);

 private:
  // A cache line of pinned memory. Slow if there is none left.
  Result<std::byte*> take_line();
  void give_line_back(std::byte* line);
  bool find_line(std::byte*& line);
  Status add_lines() TRESTLE_REQUIRES(adding_);
  std::unique_ptr<StreamLink> used_again() TRESTLE_REQUIRES(mutex_);
  Result<std::unique_ptr<StreamLink>> make();

  Device& device_;
  const GateWay way_;
  // Held while the driver is asked for memory, for which it may let the thread wait. Nothing else takes it: threads of
  // the driver and of progress give back, and must not wait.
  Mutex adding_;
  size_t lines_made_ TRESTLE_GUARDED_BY(adding_) = 0;
  Mutex lines_mutex_;
  std::vector<std::byte*> lines_ TRESTLE_GUARDED_BY(lines_mutex_);  // not used; has room for all
  Mutex mutex_;
  size_t made_ TRESTLE_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<StreamLink>> given_back_ TRESTLE_GUARDED_BY(mutex_);  // has room for all
};

}  // namespace trestle
