// MessageTable: the messages that at least one side has posted, by sender, receiver and tag. Open addressing over a
// pool: after warm-up no message allocates memory. Owned by the SimNetwork; one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "transport/transport.h"

namespace trestle {

struct SimMessage {
  MessageTag tag;
  int32_t from = 0;
  int32_t to = 0;
  SendRequest* send = nullptr;
  RecvRequest* recv = nullptr;
  uint8_t dimension = 0;
  uint64_t taken = 0;    // bytes that rails have taken, without what was sent again
  uint64_t arrived = 0;  // bytes that rails have brought
};

class MessageTable {
 public:
  // Returns the index of the message, adds the message if it is new. The index stays valid until erase().
  uint32_t find_or_add(int32_t from, int32_t to, const MessageTag& tag) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    size_t at = home(from, to, tag);
    for (; slots_[at] != kEmpty; at = next(at)) {
      const SimMessage& known = pool_[slots_[at]];
      if (known.from == from && known.to == to && known.tag == tag) return slots_[at];
    }
    uint32_t index = 0;
    if (free_.empty()) {
      index = static_cast<uint32_t>(pool_.size());
      pool_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    pool_[index] = {tag, from, to};
    slots_[at] = index;
    ++used_;
    return index;
  }

  SimMessage& operator[](uint32_t index) { return pool_[index]; }

  void erase(uint32_t index) {
    size_t hole = home(index);
    while (slots_[hole] != index) hole = next(hole);
    // Moves entries into the hole that a search could not find across it (Knuth volume 3, 6.4, algorithm R).
    for (size_t at = next(hole); slots_[at] != kEmpty; at = next(at)) {
      const size_t wanted = home(slots_[at]);
      const bool stays = hole <= at ? hole < wanted && wanted <= at : hole < wanted || wanted <= at;
      if (stays) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = kEmpty;
    --used_;
    free_.push_back(index);
  }

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;

  size_t home(int32_t from, int32_t to, const MessageTag& tag) const {
    const uint64_t ends = static_cast<uint64_t>(static_cast<uint32_t>(from)) << 32 | static_cast<uint32_t>(to);
    const uint64_t mixed = (MessageTagHash{}(tag) ^ ends * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;
    return mixed >> (64 - std::countr_zero(slots_.size()));
  }
  size_t home(uint32_t index) const { return home(pool_[index].from, pool_[index].to, pool_[index].tag); }
  size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void grow() {
    const std::vector<uint32_t> old = std::move(slots_);
    slots_.assign(old.empty() ? 64 : 2 * old.size(), kEmpty);
    for (const uint32_t index : old) {
      if (index == kEmpty) continue;
      size_t at = home(index);
      while (slots_[at] != kEmpty) at = next(at);
      slots_[at] = index;
    }
  }

  std::vector<uint32_t> slots_;  // indices into pool_
  std::vector<SimMessage> pool_;
  std::vector<uint32_t> free_;
  size_t used_ = 0;
};

}  // namespace trestle
