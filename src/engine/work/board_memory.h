// BoardMemory: what one rank brings to the board of devices (kernels/cuda/board.h): lines in the memory of its device,
// into which the kernels of the other ranks write, and words in pinned memory. All ranks of the board hold it: one that
// is late may still write there when its owner has gone.
//
// Immutable but for what kernels write; any thread. Slow to make and to destroy (device/device.h).
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"
#include "kernels/cuda/board.h"

namespace trestle {

class BoardMemory {
 public:
  // For a board of `ranks` ranks whose calls have blocks of most_bytes bytes at most. Cleared. The device outlives it.
  static Result<std::shared_ptr<BoardMemory>> create(Device& device, int32_t ranks, uint64_t most_bytes);
  BoardMemory(const BoardMemory&) = delete;
  BoardMemory& operator=(const BoardMemory&) = delete;
  ~BoardMemory();

  uint64_t* lines() const { return reinterpret_cast<uint64_t*>(memory_ + kernels::kBoardWordBytes); }
  kernels::BoardWords* words() const { return reinterpret_cast<kernels::BoardWords*>(memory_); }
  kernels::BoardControl& control() const { return *control_; }

 private:
  explicit BoardMemory(Device& device) : device_(device) {}
  Status prepare(uint64_t bytes);

  Device& device_;
  std::byte* memory_ = nullptr;
  kernels::BoardControl* control_ = nullptr;
};

}  // namespace trestle
