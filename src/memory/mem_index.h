// MemIndex: finds the mappable memory that an address lies in.
//
// Owned by the registry of that memory: of allocations (mem_alloc.h), or of a communicator's registrations. replace()
// under the owner's lock; find() from any thread, without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace trestle {

struct MemPlace {
  uint64_t id = 0;      // of the memory, never reused in this process; 0: not found
  uint64_t offset = 0;  // bytes between the start of the memory that peers map and the pointer
};

// What a peer needs to map the memory: a new descriptor, and how many bytes it maps.
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
    uint64_t offset;  // bytes between the start of the memory that peers map and `begin`
  };

  // Where [pointer, pointer + bytes) lies, if it lies in one entry.
  MemPlace find(const void* pointer, size_t bytes) const {
    while (true) {
      const uint64_t before = version_.load(std::memory_order_acquire);
      const MemPlace place = look(reinterpret_cast<uintptr_t>(pointer), bytes);
      // The loads of look() are acquire, so this one cannot be reordered before them.
      if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) return place;
    }
  }
  // Where one byte lies, without waiting for a writer. For an index inherited through a fork, whose writer may be
  // gone in the middle of its work. Then the result may be wrong.
  MemPlace peek(const void* pointer) const { return look(reinterpret_cast<uintptr_t>(pointer), 1); }
  // Makes room for so many entries. std::bad_alloc: nothing changed.
  void reserve(size_t entries);
  // The entries must be sorted by address, must not overlap, and must have room: so an owner can change its own lists
  // and this one together, or not at all.
  void replace(const std::vector<Entry>& entries) noexcept;

 private:
  static constexpr size_t kWords = 4;  // per entry
  struct Table {
    explicit Table(size_t entries) : capacity(entries), words(new std::atomic<uint64_t>[entries * kWords]()) {}
    const size_t capacity;
    const std::unique_ptr<std::atomic<uint64_t>[]> words;
  };
  MemPlace look(uintptr_t begin, size_t bytes) const;

  std::atomic<uint64_t> version_{0};
  std::atomic<Table*> table_{nullptr};
  std::atomic<size_t> count_{0};
  // Old tables are kept, since a reader may still use one. Together they are smaller than the newest one.
  std::vector<std::unique_ptr<Table>> tables_;
};

}  // namespace trestle
