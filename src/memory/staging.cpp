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
  for (const Block& block : blocks_) {
    if (!block.dropped) meter_.subtract(block.bytes);
  }
}

void StagingPool::Free::operator()(std::byte* data) const {
  ::operator delete(data, kAlignment);
}

// Allocates without the mutex: other threads take it under the progress lock, and must not wait for an allocation.
bool StagingPool::reserve(uint64_t bytes, size_t blocks) {
  if (bytes == 0) return true;
  for (size_t there = count(bytes); there < blocks; ++there) {
    Memory memory = allocate(bytes);
    if (memory == nullptr) return false;
    const MutexLock lock(mutex_);
    add(std::move(memory), bytes);
  }
  return true;
}

size_t StagingPool::count(uint64_t bytes) {
  const MutexLock lock(mutex_);
  return static_cast<size_t>(std::count_if(blocks_.begin(), blocks_.end(),
                                           [&](const Block& block) { return !block.dropped && block.bytes >= bytes; }));
}

// A missed block counts as lent in most_lent_, so that trim() keeps the block that chores() makes.
Staging StagingPool::take(uint64_t bytes) {
  const MutexLock lock(mutex_);
  Block* const block = smallest_free(bytes);
  most_lent_ = std::max(most_lent_, lent_ + 1);
  if (block == nullptr) {
    missed_bytes_ = std::max(missed_bytes_, bytes);
    if (!making_) has_chores_.store(true, std::memory_order_release);
    return {};
  }
  block->lent = true;
  ++lent_;
  return Staging(*this, private_region(block->memory.get(), block->bytes));
}

void StagingPool::give(const std::byte* data) {
  const MutexLock lock(mutex_);
  const auto block =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.memory.get() == data; });
  block->lent = false;
  --lent_;
  trim();
}

StagingPool::Memory StagingPool::allocate(uint64_t bytes) {
  return Memory(static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)));
}

void StagingPool::add(Memory memory, uint64_t bytes) {
  blocks_.push_back({std::move(memory), bytes});
  meter_.add(bytes);
}

StagingPool::Block* StagingPool::smallest_free(uint64_t bytes) {
  Block* found = nullptr;
  for (Block& block : blocks_) {
    const bool fits = !block.lent && !block.dropped && block.bytes >= bytes;
    if (fits && (found == nullptr || block.bytes < found->bytes)) found = &block;
  }
  return found;
}

// Drops the smallest free block if there are more blocks than operations ever ran at once. Not in reserve(): all others
// may be lent, and what it has just added would go.
void StagingPool::trim() {
  Block* const smallest = blocks_.size() - dropped_ > most_lent_ ? smallest_free(0) : nullptr;
  if (smallest == nullptr) return;
  meter_.subtract(smallest->bytes);
  smallest->dropped = true;
  ++dropped_;
  has_chores_.store(true, std::memory_order_release);
}

// ---- without the progress lock

// While it exists, no other thread makes what was missed.
class StagingPool::Making {
 public:
  explicit Making(StagingPool& pool) : pool_(pool) {}
  ~Making() {
    const MutexLock lock(pool_.mutex_);
    pool_.making_ = false;
    if (pool_.missed_bytes_ != 0) pool_.has_chores_.store(true, std::memory_order_release);
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  StagingPool& pool_;
};

// Returns the bytes of the block that the calling thread is to make; 0: none. there: what was missed has been given
// back meanwhile.
uint64_t StagingPool::begin_chores(bool& there) {
  const MutexLock lock(mutex_);
  has_chores_.store(false, std::memory_order_relaxed);
  if (missed_bytes_ == 0 || making_) return 0;
  const uint64_t bytes = std::exchange(missed_bytes_, 0);
  there = smallest_free(bytes) != nullptr;
  making_ = !there;
  return there ? 0 : bytes;
}

void StagingPool::free_dropped() {
  for (Memory memory;; memory.reset()) {
    const MutexLock lock(mutex_);
    const auto dropped = std::find_if(blocks_.begin(), blocks_.end(), [](const Block& block) { return block.dropped; });
    if (dropped == blocks_.end()) return;
    memory = std::move(dropped->memory);
    blocks_.erase(dropped);
    --dropped_;
  }
}

StagingPool::Chores StagingPool::chores() {
  bool there = false;
  const uint64_t bytes = begin_chores(there);
  if (bytes == 0) {
    free_dropped();
    return there ? Chores::kProvided : Chores::kNothing;
  }
  const Making making(*this);
  free_dropped();
  Memory memory = allocate(bytes);
  if (memory == nullptr) return Chores::kNoMemory;
  const MutexLock lock(mutex_);
  add(std::move(memory), bytes);
  return Chores::kProvided;
}

}  // namespace trestle
