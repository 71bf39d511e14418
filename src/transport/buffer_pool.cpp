#include "transport/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

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
  if (!free_[c].empty()) {
    std::byte* const buffer = free_[c].back();
    free_[c].pop_back();
    kept_bytes_ -= size_t{1} << c;
    return buffer;
  }
  void* const memory = ::operator new(sizeof(Block) + (size_t{1} << c), kAlignment, std::nothrow);
  if (memory == nullptr) return nullptr;
  auto* const block = new (memory) Block{nullptr, blocks_};
  if (blocks_ != nullptr) blocks_->previous = block;
  blocks_ = block;
  if (meter_ != nullptr) meter_->add(size_t{1} << c);
  return reinterpret_cast<std::byte*>(block + 1);
}

void BufferPool::give(std::byte* buffer, size_t bytes) {
  const size_t c = class_of(bytes);
  if (kept_bytes_ + (size_t{1} << c) <= most_kept_bytes_) {
    free_[c].push_back(buffer);
    kept_bytes_ += size_t{1} << c;
    return;
  }
  Block* const block = reinterpret_cast<Block*>(buffer) - 1;
  (block->previous != nullptr ? block->previous->next : blocks_) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
  ::operator delete(block, kAlignment);
  if (meter_ != nullptr) meter_->subtract(size_t{1} << c);
}

BufferPool::~BufferPool() {
  while (blocks_ != nullptr) ::operator delete(std::exchange(blocks_, blocks_->next), kAlignment);
}

}  // namespace trestle
