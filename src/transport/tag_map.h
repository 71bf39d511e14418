// TagMap: what is open under a message's tag. Open addressing, so that after warm-up nothing is allocated per message.
// Owned by one transport, used under its rank's progress lock.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"
#include "transport/transport.h"

namespace trestle {

template <class Value>  // small and copyable
class TagMap {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Null when there is none. Valid until the next insert or erase.
  Value* find(const MessageTag& tag) {
    if (size_ == 0) return nullptr;
    for (size_t at = home(tag);; at = next(at)) {
      if (!slots_[at].used) return nullptr;
      if (slots_[at].tag == tag) return &slots_[at].value;
    }
  }

  // What find() finds, or Value{}.
  Value get(const MessageTag& tag) {
    const Value* const found = find(tag);
    return found != nullptr ? *found : Value{};
  }

  // False, and nothing changed, when the tag is there already.
  bool insert(const MessageTag& tag, Value value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    size_t at = home(tag);
    while (slots_[at].used) {
      if (slots_[at].tag == tag) return false;
      at = next(at);
    }
    slots_[at] = {tag, value, true};
    ++size_;
    return true;
  }

  // Removes and returns what find() found.
  bool take(const MessageTag& tag, Value& value) {
    Value* found = find(tag);
    if (found == nullptr) return false;
    value = *found;
    erase(tag);
    return true;
  }
  // Or Value{}.
  Value take(const MessageTag& tag) {
    Value value{};
    take(tag, value);
    return value;
  }

  void erase(const MessageTag& tag) {
    if (size_ == 0) return;
    size_t hole = home(tag);
    while (!(slots_[hole].tag == tag && slots_[hole].used)) {
      if (!slots_[hole].used) return;
      hole = next(hole);
    }
    // Closes the gap: whatever would not be found across the hole moves into it (Knuth volume 3, 6.4, algorithm R).
    for (size_t at = next(hole); slots_[at].used; at = next(at)) {
      const size_t wanted = home(slots_[at].tag);
      const bool stays = hole <= at ? hole < wanted && wanted <= at : hole < wanted || wanted <= at;
      if (stays) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].used = false;
    --size_;
  }

  void clear() {
    for (Slot& slot : slots_) slot.used = false;
    size_ = 0;
  }

  template <class Visit>  // void(const MessageTag&, Value&); must not insert or erase
  void for_each(Visit visit) {
    for (Slot& slot : slots_) {
      if (slot.used) visit(std::as_const(slot.tag), slot.value);
    }
  }

 private:
  struct Slot {
    MessageTag tag;
    Value value{};
    bool used = false;
  };

  // Multiplication spreads the low bits, which differ between tags, over the high ones, which choose the slot.
  size_t home(const MessageTag& tag) const {
    return (MessageTagHash{}(tag)*0x9e3779b97f4a7c15ull) >> (64 - std::countr_zero(slots_.size()));
  }
  size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : 2 * old.size(), Slot{});
    size_ = 0;
    for (const Slot& slot : old) {
      if (slot.used) CHECK(insert(slot.tag, slot.value), "a tag was in its map twice");
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace trestle
