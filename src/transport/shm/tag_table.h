// TagTable: pointers by message tag, for the messages that are open with one peer.
//
// Value type, one thread. Open addressing with linear probing; an erased entry is filled by moving later ones back
// (Knuth, The Art of Computer Programming 3, 6.4, algorithm R), so a table that is used for ever does not fill up with
// tombstones. Allocates only to grow, which ends with the largest number of messages ever open at once.
#pragma once

#include <cstddef>
#include <vector>

#include "base/check.h"
#include "transport/transport.h"

namespace trestle {

template <class T>
class TagTable {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // nullptr: none.
  T* find(const MessageTag& tag) const {
    if (size_ == 0) return nullptr;
    for (size_t i = home(tag); entries_[i].value != nullptr; i = next(i)) {
      if (entries_[i].tag == tag) return entries_[i].value;
    }
    return nullptr;
  }

  // False: the tag is there already, nothing changed.
  bool insert(const MessageTag& tag, T* value) {
    CHECK(value != nullptr, "nothing was put into a tag table");
    if ((size_ + 1) * 2 > entries_.size()) grow();
    size_t i = home(tag);
    for (; entries_[i].value != nullptr; i = next(i)) {
      if (entries_[i].tag == tag) return false;
    }
    entries_[i] = {tag, value};
    ++size_;
    return true;
  }

  // Finds and erases.
  T* take(const MessageTag& tag) {
    if (size_ == 0) return nullptr;
    size_t i = home(tag);
    while (entries_[i].value != nullptr && !(entries_[i].tag == tag)) i = next(i);
    T* const value = entries_[i].value;
    if (value != nullptr) close_gap(i);
    return value;
  }

  template <class F>
  void for_each(F visit) const {
    for (const Entry& entry : entries_) {
      if (entry.value != nullptr) visit(entry.tag, *entry.value);
    }
  }

 private:
  struct Entry {
    MessageTag tag;
    T* value = nullptr;
  };

  size_t home(const MessageTag& tag) const { return MessageTagHash{}(tag) & (entries_.size() - 1); }
  size_t next(size_t i) const { return (i + 1) & (entries_.size() - 1); }

  void close_gap(size_t gap) {
    --size_;
    for (size_t i = next(gap); entries_[i].value != nullptr; i = next(i)) {
      // An entry may move back to the gap if its home is not between the gap and where it is.
      const size_t distance_home = (i - home(entries_[i].tag)) & (entries_.size() - 1);
      const size_t distance_gap = (i - gap) & (entries_.size() - 1);
      if (distance_home < distance_gap) continue;
      entries_[gap] = entries_[i];
      gap = i;
    }
    entries_[gap].value = nullptr;
  }

  void grow() {
    std::vector<Entry> old(entries_.empty() ? 32 : entries_.size() * 2);
    old.swap(entries_);
    size_ = 0;
    for (const Entry& entry : old) {
      if (entry.value != nullptr) insert(entry.tag, entry.value);
    }
  }

  std::vector<Entry> entries_;
  size_t size_ = 0;
};

}  // namespace trestle
