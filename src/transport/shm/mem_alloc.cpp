#include "transport/shm/mem_alloc.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/counter.h"
#include "base/mutex.h"
#include "transport/shm/segment.h"

namespace trestle {

namespace {

// The allocations sorted by address, for readers without a lock: a sequence lock over words that are all atomic.
// A reader that meets a writer reads again.
class Index {
 public:
  struct Entry {
    uintptr_t begin;
    uintptr_t end;
    uint64_t id;
  };

  MemPlace find(uintptr_t begin, size_t bytes) const {
    while (true) {
      const uint64_t before = version_.load(std::memory_order_acquire);
      const MemPlace place = look(begin, bytes);
      // The loads of look() are acquire, so this one cannot be made before them.
      if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) return place;
    }
  }

  // Under the registry's lock.
  void replace(const std::vector<Entry>& entries) {
    version_.fetch_add(1, std::memory_order_acq_rel);
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr || table->capacity < entries.size()) table = grow(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      table->words[i * 3].store(entries[i].begin, std::memory_order_release);
      table->words[i * 3 + 1].store(entries[i].end, std::memory_order_release);
      table->words[i * 3 + 2].store(entries[i].id, std::memory_order_release);
    }
    count_.store(entries.size(), std::memory_order_release);
    version_.fetch_add(1, std::memory_order_acq_rel);
  }

 private:
  struct Table {
    explicit Table(size_t entries) : capacity(entries), words(new std::atomic<uint64_t>[entries * 3]()) {}
    const size_t capacity;
    const std::unique_ptr<std::atomic<uint64_t>[]> words;
  };

  // The last entry that begins at or before the address; entries do not overlap.
  MemPlace look(uintptr_t begin, size_t bytes) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return {};
    size_t low = 0;
    size_t high = std::min(count_.load(std::memory_order_acquire), table->capacity);
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (table->words[middle * 3].load(std::memory_order_acquire) <= begin) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0) return {};
    const std::atomic<uint64_t>* entry = &table->words[(low - 1) * 3];
    const uint64_t first = entry[0].load(std::memory_order_acquire);
    const uint64_t end = entry[1].load(std::memory_order_acquire);
    const uint64_t id = entry[2].load(std::memory_order_acquire);
    if (begin >= end || bytes > end - begin) return {};
    return {id, begin - first};
  }

  // Old tables are kept, a reader may still be in one: together they are smaller than the current one.
  Table* grow(size_t entries) {
    tables_.push_back(std::make_unique<Table>(std::max<size_t>(16, entries * 2)));
    table_.store(tables_.back().get(), std::memory_order_release);
    return tables_.back().get();
  }

  std::atomic<uint64_t> version_{0};
  std::atomic<Table*> table_{nullptr};
  std::atomic<size_t> count_{0};
  std::vector<std::unique_ptr<Table>> tables_;
};

struct Allocation {
  uint64_t id = 0;
  size_t bytes = 0;  // as asked for
  Segment segment;
};

struct Registry {
  Mutex mutex;
  std::map<uintptr_t, Allocation> allocations TRESTLE_GUARDED_BY(mutex);  // by address
  uint64_t last_id TRESTLE_GUARDED_BY(mutex) = 0;
  Index index;  // replaced under the mutex, read without
  std::atomic<uint64_t> frees{0};
  ByteMeter meter;

  void publish() TRESTLE_REQUIRES(mutex) {
    std::vector<Index::Entry> entries;
    entries.reserve(allocations.size());
    for (const auto& [begin, allocation] : allocations) {
      entries.push_back({begin, begin + allocation.segment.bytes(), allocation.id});
    }
    index.replace(entries);
  }
};

// Lives until the process ends: memory may be freed by other static destructors.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

Result<void*> mem_alloc(size_t bytes) {
  if (bytes == 0) return Error{Code::kInvalidArgument, "0 bytes of memory were asked for"};
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.segment = TRY(Segment::create("trestle-memory", bytes, true));
  void* const data = allocation.segment.data();
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  allocation.id = ++r.last_id;
  r.meter.add(allocation.segment.bytes());
  r.allocations.emplace(reinterpret_cast<uintptr_t>(data), std::move(allocation));
  r.publish();
  return data;
}

Status mem_free(void* pointer) {
  if (pointer == nullptr) return {};
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  const auto found = r.allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == r.allocations.end()) {
    return Error{Code::kInvalidArgument,
                 "the pointer to free was not returned by trestleMemAlloc, or was freed before"};
  }
  const Segment gone = std::move(found->second.segment);  // unmapped after nobody can find it any more
  r.allocations.erase(found);
  r.meter.subtract(gone.bytes());
  r.publish();
  r.frees.fetch_add(1, std::memory_order_release);
  return {};
}

MemPlace mem_find(const void* pointer, size_t bytes) {
  return registry().index.find(reinterpret_cast<uintptr_t>(pointer), bytes);
}

Result<MemShare> mem_share(uint64_t id) {
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  for (const auto& [begin, allocation] : r.allocations) {
    if (allocation.id != id) continue;
    const int fd = fcntl(allocation.segment.fd(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
      return Error{Code::kSystemError, std::string("cannot duplicate a descriptor: ") + std::strerror(errno)};
    }
    return MemShare{fd, allocation.segment.bytes()};
  }
  return Error{Code::kInvalidArgument, "the memory was freed by trestleMemFree while it was still in use"};
}

uint64_t mem_bytes() {
  return registry().meter.now();
}

uint64_t mem_frees() {
  return registry().frees.load(std::memory_order_acquire);
}

bool mem_alive(uint64_t id) {
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  return std::any_of(r.allocations.begin(), r.allocations.end(), [&](const auto& a) { return a.second.id == id; });
}

}  // namespace trestle
