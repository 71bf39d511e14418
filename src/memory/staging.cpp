#include "memory/staging.h"

#include <algorithm>
#include <new>
#include <utility>

namespace trestle {

namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

Staging::Staging(Staging&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), region_(std::exchange(other.region_, {})) {}

Staging& Staging::operator=(Staging&& other) noexcept {
  if (this != &other) {
    give_back();
    pool_ = std::exchange(other.pool_, nullptr);
    region_ = std::exchange(other.region_, {});
  }
  return *this;
}

void Staging::give_back() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->give(region_.base);
  region_ = {};
}

StagingPool::~StagingPool() {
  for (const Block& block : blocks_) meter_.subtract(block.bytes);
}

void StagingPool::Free::operator()(std::byte* data) const {
  ::operator delete(data, kAlignment);
}

void StagingPool::reserve(uint64_t bytes) {
  const MutexLock lock(mutex_);
  const auto fits = [&](const Block& block) { return block.bytes >= bytes; };
  if (bytes == 0 || std::any_of(blocks_.begin(), blocks_.end(), fits)) return;
  add(bytes);
}

Staging StagingPool::take(uint64_t bytes) {
  const MutexLock lock(mutex_);
  Block* block = smallest_free(bytes);
  if (block == nullptr) block = &add(bytes);
  block->lent = true;
  most_lent_ = std::max(most_lent_, ++lent_);
  return Staging(*this, private_region(block->data.get(), block->bytes));
}

void StagingPool::give(const std::byte* data) {
  const MutexLock lock(mutex_);
  const auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.data.get() == data; });
  block->lent = false;
  --lent_;
  trim();
}

StagingPool::Block& StagingPool::add(uint64_t bytes) {
  std::unique_ptr<std::byte, Free> data(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
  blocks_.push_back({std::move(data), bytes});
  meter_.add(bytes);
  return blocks_.back();
}

StagingPool::Block* StagingPool::smallest_free(uint64_t bytes) {
  Block* found = nullptr;
  for (Block& block : blocks_) {
    if (!block.lent && block.bytes >= bytes && (found == nullptr || block.bytes < found->bytes)) found = &block;
  }
  return found;
}

// Frees the smallest blocks, as long as there are more than operations ever ran at once. Not in reserve(): all others
// may be lent, and what it has just added would go.
void StagingPool::trim() {
  while (blocks_.size() > most_lent_) {
    const Block* const smallest = smallest_free(0);
    if (smallest == nullptr) return;
    meter_.subtract(smallest->bytes);
    blocks_.erase(blocks_.begin() + (smallest - blocks_.data()));
  }
}

}  // namespace trestle
