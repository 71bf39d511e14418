#include "memory/mem_alloc.h"

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
#include "base/fork.h"
#include "base/mutex.h"
#include "memory/mem_index.h"
#include "memory/segment.h"

namespace trestle {

namespace {

struct Allocation {
  uint64_t id = 0;
  size_t bytes = 0;  // as requested
  Segment segment;
};

struct Registry {
  explicit Registry(const Registry* of_parent) : parents(of_parent) {}
  // The registry of the process that forked this one, as it was then. Only its index is used.
  const Registry* const parents;
  Mutex mutex;
  std::map<uintptr_t, Allocation> allocations TRESTLE_GUARDED_BY(mutex);  // by address
  uint64_t last_id TRESTLE_GUARDED_BY(mutex) = 0;
  MemIndex index;  // replaced under the mutex, read without
  std::atomic<uint64_t> frees{0};
  ByteMeter meter;

  // For the index, of all allocations, with room for one more.
  std::vector<MemIndex::Entry> entries() TRESTLE_REQUIRES(mutex) {
    std::vector<MemIndex::Entry> all;
    all.reserve(allocations.size() + 1);
    for (const auto& [begin, allocation] : allocations) {
      all.push_back({begin, begin + allocation.segment.bytes(), allocation.id, 0});
    }
    index.reserve(all.size() + 1);
    return all;
  }
};

constinit PerProcess<Registry> process_registry;

Registry& registry() {
  return process_registry.get([] { return Registry(process_registry.inherited()); });
}

bool is_of_a_parent(const Registry& registry, const void* pointer) {
  for (const Registry* r = registry.parents; r != nullptr; r = r->parents) {
    const MemPlace place = r->index.peek(pointer);
    if (place.id != 0 && place.offset == 0) return true;
  }
  return false;
}

}  // namespace

Result<void*> mem_alloc(size_t bytes) {
  if (bytes == 0) return Error{Code::kInvalidArgument, "0 bytes of memory were asked for"};
  Allocation allocation;
  allocation.bytes = bytes;
  allocation.segment = TRY(Segment::create("trestle-memory", bytes, true));
  TRY(allocation.segment.keep_in_children());
  void* const data = allocation.segment.data();
  Registry& r = registry();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const size_t segment_bytes = allocation.segment.bytes();
  const MutexLock lock(r.mutex);
  allocation.id = ++r.last_id;
  // Whatever needs memory comes before the first change.
  std::vector<MemIndex::Entry> entries = r.entries();
  const auto place =
      std::find_if(entries.begin(), entries.end(), [&](const auto& other) { return begin < other.begin; });
  entries.insert(place, {begin, begin + segment_bytes, allocation.id, 0});
  r.allocations.emplace(begin, std::move(allocation));
  r.index.replace(entries);
  r.meter.add(segment_bytes);
  return data;
}

Status mem_free(void* pointer) {
  if (pointer == nullptr) return {};
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  const auto found = r.allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == r.allocations.end()) {
    if (is_of_a_parent(r, pointer)) {
      return Error{
          Code::kInvalidUsage,
          "the memory was allocated by trestleMemAlloc before fork(), in the process that forked this one, and "
          "only that one frees it"};
    }
    return Error{Code::kInvalidArgument,
                 "the pointer to free was not returned by trestleMemAlloc, or was freed before"};
  }
  std::vector<MemIndex::Entry> entries = r.entries();  // before the first change: there may be no memory for it
  std::erase_if(entries, [&](const MemIndex::Entry& entry) { return entry.id == found->second.id; });
  const Segment gone = std::move(found->second.segment);  // unmapped after no lookup can find it any more
  r.allocations.erase(found);
  r.meter.subtract(gone.bytes());
  r.index.replace(entries);
  r.frees.fetch_add(1, std::memory_order_release);
  return {};
}

MemPlace mem_find(const void* pointer, size_t bytes) {
  return registry().index.find(pointer, bytes);
}

Result<MemShare> mem_share(uint64_t id) {
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  for (const auto& [begin, allocation] : r.allocations) {
    if (allocation.id != id) continue;
    const int own = allocation.segment.fd();
    UniqueFd fd = UniqueFd::open([own] { return fcntl(own, F_DUPFD_CLOEXEC, 0); });
    if (!fd) {
      return Error{Code::kSystemError, std::string("cannot duplicate a descriptor: ") + std::strerror(errno)};
    }
    return MemShare{std::move(fd), allocation.segment.bytes()};
  }
  return Error{Code::kInvalidArgument, "the memory was freed by trestleMemFree while it was still in use"};
}

uint64_t mem_new_id() {
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  return ++r.last_id;
}

bool mem_overlaps(const void* pointer, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  Registry& r = registry();
  const MutexLock lock(r.mutex);
  return std::any_of(r.allocations.begin(), r.allocations.end(), [&](const auto& a) {
    return a.first < begin + bytes && begin < a.first + a.second.segment.bytes();
  });
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
