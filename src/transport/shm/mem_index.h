// MemIndex: which memory that peers can map an address lies in.
//
// Owned by whoever knows that memory: the registry of allocations (mem_alloc.h), or the registrations of a
// communicator. replace() under the owner's lock; find() from any thread, without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace trestle {

struct MemPlace {
  uint64_t id = 0;      // of the memory, never used again in this process; 0: not found
  uint64_t offset = 0;  // bytes, of the pointer in what peers map
};

// To pass to a peer: a new descriptor of the memory, and how much of it the peer maps.
struct MemShare {
  UniqueFd fd;
  size_t bytes = 0;
};

// Entries sorted by address, for readers without a lock: a sequence lock over words that are all atomic. A reader that
// meets a writer reads again.
class MemIndex {
 public:
  struct Entry {
    uintptr_t begin;
    uintptr_t end;
    uint64_t id;
    uint64_t offset;  // of `begin` in what peers map
  };

  // Where [begin, begin + bytes) lies, if it lies in one entry.
  MemPlace find(const void* pointer, size_t bytes) const {
    while (true) {
      const uint64_t before = version_.load(std::memory_order_acquire);
      const MemPlace place = look(reinterpret_cast<uintptr_t>(pointer), bytes);
      // The loads of look() are acquire, so this one cannot be made before them.
      if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) return place;
    }
  }
  // The same for one byte, without a wait for a writer: for an index that a process has inherited, whose writer may be
  // gone in the middle of its work. Then it may be wrong.
  MemPlace peek(const void* pointer) const { return look(reinterpret_cast<uintptr_t>(pointer), 1); }
  // Sorted by address; they do not overlap.
  void replace(const std::vector<Entry>& entries);

 private:
  static constexpr size_t kWords = 4;  // of an entry
  struct Table {
    explicit Table(size_t entries) : capacity(entries), words(new std::atomic<uint64_t>[entries * kWords]()) {}
    const size_t capacity;
    const std::unique_ptr<std::atomic<uint64_t>[]> words;
  };
  MemPlace look(uintptr_t begin, size_t bytes) const;
  Table* grow(size_t entries);

  std::atomic<uint64_t> version_{0};
  std::atomic<Table*> table_{nullptr};
  std::atomic<size_t> count_{0};
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace trestle
