#include "memory/claims.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace trestle {

namespace {

constexpr uint64_t kLeastBytes = uint64_t{64} << 10;
constexpr uint64_t kMostDoubled = uint64_t{64} << 20;  // a block that is longer has less than this to spare

uint64_t block_bytes(uint64_t bytes) {
  if (bytes > kMostDoubled) return (bytes + kMostDoubled - 1) / kMostDoubled * kMostDoubled;
  return std::bit_ceil(std::max(bytes, kLeastBytes));
}

bool is_same(const Lane& a, const Lane& b) {
  return a.number == b.number && !a.stream.owner_before(b.stream) && !b.stream.owner_before(a.stream);
}

}  // namespace

Claim::~Claim() {
  pool_.end(*this);
}

ClaimPool::~ClaimPool() {
  for (const Block& block : blocks_) meter_.subtract(block.region.bytes);
}

std::shared_ptr<const Claim> ClaimPool::claim(const Lane& lane, uint64_t bytes, size_t count) {
  std::shared_ptr<Claim> claim(new Claim(*this));
  claim->blocks_.reserve(count);  // a block that counts a claim is in it
  add_present(*claim, lane, bytes, count);
  while (claim->blocks() < count) {
    if (!add_new(*claim, lane, bytes)) return nullptr;
  }
  return claim;
}

void ClaimPool::add_present(Claim& claim, const Lane& lane, uint64_t bytes, size_t count) {
  const MutexLock lock(mutex_);
  while (claim.blocks() < count) {
    Block* const block = best_present(claim, lane, bytes);
    if (block == nullptr) return;
    if (block->claims++ == 0) block->lane = lane;
    claim.blocks_.push_back(&block->region);
  }
}

// Prefers blocks that the lane has to free ones, and among these the smallest. nullptr: none fits.
ClaimPool::Block* ClaimPool::best_present(const Claim& claim, const Lane& lane, uint64_t bytes) {
  Block* best = nullptr;
  bool best_is_own = false;
  for (Block& block : blocks_) {
    const bool own = block.claims != 0 && is_same(block.lane, lane);
    const bool fits = block.region.bytes >= bytes && (block.claims == 0 || own);
    if (!fits || std::ranges::count(claim.blocks_, &block.region) != 0) continue;
    const bool better = best == nullptr || (own != best_is_own ? own : block.region.bytes < best->region.bytes);
    if (!better) continue;
    best = &block;
    best_is_own = own;
  }
  return best;
}

bool ClaimPool::add_new(Claim& claim, const Lane& lane, uint64_t bytes) {
  bytes = block_bytes(bytes);
  std::list<Block> made(1);
  Block& block = made.front();
  block.memory = std::unique_ptr<std::byte, Free>(source_.allocate(bytes), Free{&source_});
  if (block.memory == nullptr) return false;
  block.region = private_region(block.memory.get(), bytes, device_);
  block.claims = 1;
  block.lane = lane;
  meter_.add(bytes);
  const MutexLock lock(mutex_);
  blocks_.splice(blocks_.end(), made);
  claim.blocks_.push_back(&block.region);
  return true;
}

void ClaimPool::end(const Claim& claim) {
  const MutexLock lock(mutex_);
  for (Block& block : blocks_) {
    if (std::ranges::count(claim.blocks_, &block.region) == 0) continue;
    if (--block.claims == 0) block.lane = {};
  }
}

}  // namespace trestle
