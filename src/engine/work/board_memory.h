// BoardMemory: what one rank brings to the board of devices (kernels/cuda/board.h): words and lines in the memory of
// its device, where the kernels of the other ranks write lines, and words in pinned memory. A rank holds its own and
// that of every other rank, of this process or of another one: one that is late may still write there when its owner
// has gone.
//
// Immutable but for what kernels write, and for what ranks say when they leave; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "device/device.h"
#include "kernels/cuda/board.h"

namespace trestle {

// The words in pinned memory. Where ranks are in several processes, all of them see it.
struct BoardPage {
  static constexpr uint32_t kProofBytes = 256;
  using Proof = unsigned char[kProofBytes];

  kernels::BoardControl control;  // kernels of the owner write it
  // By rank: the last lending of this memory (comm/device/board_store.h) in which it has said that its kernels write to
  // the owner no more.
  std::atomic<uint32_t> left[kernels::kMostBoardRanks] = {};
  // What the owner sends and receives in the call that proves a board of several processes (comm/setup/board_setup.h).
  alignas(16) Proof sent = {};
  alignas(16) unsigned char received[kernels::kMostBoardRanks * kProofBytes] = {};
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "other processes write it");

class BoardMemory {
 public:
  // For ranks of this process. memory: of the device, board_bytes() long; page: pinned, room for a BoardPage. Both live
  // as long as `held`. Clears them. Slow (device/device.h). Errors: the driver's.
  static Result<std::shared_ptr<BoardMemory>> create(Device& device, std::byte* memory, uint64_t bytes, std::byte* page,
                                                     std::shared_ptr<const void> held);
  // memory: words and lines, cleared, as this process sees them; it and the page live as long as `held`.
  BoardMemory(std::byte* memory, BoardPage& page, uint32_t lending, std::shared_ptr<const void> held)
      : memory_(memory), page_(page), lending_(lending), held_(std::move(held)) {}

  uint64_t* lines() const { return reinterpret_cast<uint64_t*>(memory_ + kernels::kBoardWordBytes); }
  // For the owner.
  kernels::BoardWords* words() const { return reinterpret_cast<kernels::BoardWords*>(memory_); }
  kernels::BoardControl& control() const { return page_.control; }
  BoardPage& page() const { return page_; }
  // No kernel of this rank, which is another one than the owner, writes lines any more.
  void leave(int32_t rank) const { page_.left[rank].store(lending_, std::memory_order_release); }

 private:
  std::byte* const memory_;
  BoardPage& page_;
  const uint32_t lending_;
  const std::shared_ptr<const void> held_;
};

// Sets words and lines to 0, and waits for the device. Slow.
Status clear_board(Device& device, std::byte* memory, uint64_t bytes);

}  // namespace trestle
