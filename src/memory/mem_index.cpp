#include "memory/mem_index.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {

// A new table is empty until replace(). A reader that finds it with the old count would read zeros, so both change
// inside one version.
void MemIndex::reserve(size_t entries) {
  const Table* table = table_.load(std::memory_order_relaxed);
  if (table != nullptr && table->capacity >= entries) return;
  tables_.push_back(std::make_unique<Table>(std::max<size_t>(16, entries * 2)));
}

void MemIndex::replace(const std::vector<Entry>& entries) noexcept {
  version_.fetch_add(1, std::memory_order_acq_rel);
  Table* const table = tables_.empty() ? nullptr : tables_.back().get();  // the newest is the largest
  CHECK(entries.empty() || (table != nullptr && table->capacity >= entries.size()), "an index without room");
  table_.store(table, std::memory_order_release);
  for (size_t i = 0; i < entries.size(); ++i) {
    std::atomic<uint64_t>* const words = &table->words[i * kWords];
    words[0].store(entries[i].begin, std::memory_order_release);
    words[1].store(entries[i].end, std::memory_order_release);
    words[2].store(entries[i].id, std::memory_order_release);
    words[3].store(entries[i].offset, std::memory_order_release);
  }
  count_.store(entries.size(), std::memory_order_release);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

// Looks at the last entry that begins at or before the address.
MemPlace MemIndex::look(uintptr_t begin, size_t bytes) const {
  const Table* table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return {};
  size_t low = 0;
  size_t high = std::min(count_.load(std::memory_order_acquire), table->capacity);
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (table->words[middle * kWords].load(std::memory_order_acquire) <= begin) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return {};
  const std::atomic<uint64_t>* entry = &table->words[(low - 1) * kWords];
  const uint64_t first = entry[0].load(std::memory_order_acquire);
  const uint64_t end = entry[1].load(std::memory_order_acquire);
  const uint64_t id = entry[2].load(std::memory_order_acquire);
  const uint64_t offset = entry[3].load(std::memory_order_acquire);
  if (begin >= end || bytes > end - begin) return {};
  return {id, offset + (begin - first)};
}

}  // namespace trestle
