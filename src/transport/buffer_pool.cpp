#include "transport/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <new>

namespace trestle {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kLeastBytes = 256;

}  // namespace

size_t BufferPool::class_of(size_t bytes) {
  return static_cast<size_t>(std::countr_zero(std::bit_ceil(std::max(bytes, kLeastBytes))));
}

std::byte* BufferPool::take(size_t bytes) {
  const size_t c = class_of(bytes);
  if (free_[c].empty()) return static_cast<std::byte*>(::operator new (size_t{1} << c, kAlignment, std::nothrow));
  std::byte* const buffer = free_[c].back();
  free_[c].pop_back();
  kept_bytes_ -= size_t{1} << c;
  return buffer;
}

void BufferPool::give(std::byte* buffer, size_t bytes) {
  const size_t c = class_of(bytes);
  if (kept_bytes_ + (size_t{1} << c) > most_kept_bytes_) {
    ::operator delete(buffer, kAlignment);
    return;
  }
  free_[c].push_back(buffer);
  kept_bytes_ += size_t{1} << c;
}

BufferPool::~BufferPool() {
  for (auto& list : free_) {
    for (std::byte* buffer : list) ::operator delete(buffer, kAlignment);
  }
}

}  // namespace trestle
