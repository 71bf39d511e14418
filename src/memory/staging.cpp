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
  if (bytes == 0 || has(bytes)) return;
  Memory memory = allocate(bytes);  // a thread that needs the mutex holds the progress lock, and must not wait for this
  const MutexLock lock(mutex_);
  add(std::move(memory), bytes);
}

bool StagingPool::has(uint64_t bytes) {
  const MutexLock lock(mutex_);
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.bytes >= bytes; });
}

Staging StagingPool::take(uint64_t bytes) {
  const MutexLock lock(mutex_);
  Block* block = smallest_free(bytes);
  if (block == nullptr) block = &add(allocate(bytes), bytes);
  block->lent = true;
  most_lent_ = std::max(most_lent_, ++lent_);
  return Staging(*this, private_region(block->memory.get(), block->bytes));
}

void StagingPool::give(const std::byte* data) {
  Memory gone;  // freed after the mutex
  const MutexLock lock(mutex_);
  const auto block =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.memory.get() == data; });
  block->lent = false;
  --lent_;
  gone = trim();
}

StagingPool::Memory StagingPool::allocate(uint64_t bytes) {
  return Memory(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
}

StagingPool::Block& StagingPool::add(Memory memory, uint64_t bytes) {
  blocks_.push_back({std::move(memory), bytes});
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

// Takes out the smallest free block if there are more blocks than operations ever ran at once. Not in reserve(): all
// others may be lent, and what it has just added would go.
StagingPool::Memory StagingPool::trim() {
  Block* const smallest = blocks_.size() > most_lent_ ? smallest_free(0) : nullptr;
  if (smallest == nullptr) return nullptr;
  meter_.subtract(smallest->bytes);
  Memory memory = std::move(smallest->memory);
  blocks_.erase(blocks_.begin() + (smallest - blocks_.data()));
  return memory;
}

}  // namespace trestle
