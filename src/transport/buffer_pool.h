// BufferPool: memory for data that arrived before its receive, and for views. Owned by one transport, used under its
// rank's progress lock. The buffer that was given back last is taken first, because it is still in the cache. The pool
// frees buffers that were never given back (views of a communicator that failed).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/counter.h"

namespace trestle {

class BufferPool {
 public:
  explicit BufferPool(size_t most_kept_bytes = size_t{16} << 20) : most_kept_bytes_(most_kept_bytes) {}
  // Counts its buffers in `meter`, which outlives it.
  explicit BufferPool(ByteMeter& meter) : BufferPool() { meter_ = &meter; }
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // At least `bytes` (1 or more), aligned to a cache line; null when there is no memory.
  std::byte* take(size_t bytes);
  // `bytes`: the same as in take().
  void give(std::byte* buffer, size_t bytes);

 private:
  // Lies before every buffer; all of them form a list.
  struct alignas(64) Block {
    Block* previous;
    Block* next;
  };
  static constexpr size_t kClasses = 64;  // class c holds buffers of 1 << c bytes
  static size_t class_of(size_t bytes);

  const size_t most_kept_bytes_;
  size_t kept_bytes_ = 0;
  ByteMeter* meter_ = nullptr;
  Block* blocks_ = nullptr;
  std::array<std::vector<std::byte*>, kClasses> free_;
};

}  // namespace trestle
