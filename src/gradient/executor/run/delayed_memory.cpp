#include "gradient/executor/run/delayed_memory.h"

#include <algorithm>
#include <cstring>

#include "gradient/executor/fused_buffer.h"
#include "kernels/reduce.h"

namespace trestle {
namespace {

void add_to(std::byte* sum, const std::byte* more, uint64_t count, DataType type) {
  if (count == 0) return;
  const std::array<const std::byte*, 2> sources = {sum, more};
  find_reduce(type, ReduceOp::kSum)(sum, sources, count, {});
}

}  // namespace

Result<std::unique_ptr<DelayedMemory>> DelayedMemory::make(trestleComm_t comm, const std::vector<TensorEntry>& tensors,
                                                           const std::vector<TensorGroup>& buckets) {
  std::unique_ptr<DelayedMemory> memory(new DelayedMemory(tensors));
  memory->lay_out(buckets);
  if (memory->bytes_ == 0) return memory;
  TRY(core_status(trestleMemAlloc(memory->memory_.out(), 2 * memory->bytes_), comm));
  auto* const first = static_cast<std::byte*>(memory->memory_.get());
  memory->sums_ = {first, first + memory->bytes_};
  return memory;
}

void DelayedMemory::lay_out(const std::vector<TensorGroup>& buckets) {
  places_.resize(tensors_.size());
  accounts_.resize(tensors_.size());
  for (const TensorGroup& bucket : buckets) {
    std::vector<TensorParts> pieces;
    for (uint32_t i = bucket.first; i <= bucket.last; ++i) pieces.push_back({i});
    buckets_.emplace_back();
    for (const FusedLayout& layout : whole_layouts(tensors_, pieces)) {
      const uint64_t size = size_of(layout.type);
      for (const FusedSpan& span : layout.spans) places_[span.tensor] = bytes_ + span.in_buffer * size;
      buckets_.back().push_back({layout.type, bytes_, layout.count});
      bytes_ += whole_lines(layout.count * size);
    }
  }
}

std::vector<DelayedMemory::Run> DelayedMemory::runs(uint32_t bucket, uint32_t part, uint32_t parts) const {
  std::vector<Run> runs;
  for (const Run& whole : buckets_[bucket]) {
    const auto begins = [&](uint64_t number) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(whole.count) * number / parts);
    };
    const uint64_t begin = begins(part);
    const uint64_t count = begins(uint64_t{part} + 1) - begin;
    if (count > 0) runs.push_back({whole.type, whole.offset + begin * size_of(whole.type), count});
  }
  return runs;
}

void DelayedMemory::add(uint32_t tensor, uint64_t set, const std::byte* gradient, uint64_t step) {
  const TensorEntry& entry = tensors_[tensor];
  Account& account = accounts_[tensor];
  Batches& batches = account.of[set % 2];
  if (entry.count > 0) {
    std::byte* const sum = sums_[set % 2] + places_[tensor];
    if (batches.count == 0) {
      std::memcpy(sum, gradient, entry.bytes());
    } else {
      add_to(sum, gradient, entry.count, entry.type);
    }
  }
  if (batches.count++ == 0) batches.oldest = step;
  batches.newest = step;
  ++account.added;
}

void DelayedMemory::merge(const Run& run, uint64_t set) {
  add_to(at(run, set + 1), at(run, set), run.count, run.type);
}

void DelayedMemory::merge_accounts(uint64_t set) {
  for (Account& account : accounts_) {
    Batches& from = account.of[set % 2];
    Batches& to = account.of[(set + 1) % 2];
    to = {from.count + to.count, from.oldest, to.newest};
    from = {};
  }
}

Result<DelayedMemory::Batches> DelayedMemory::take(uint32_t tensor, uint64_t set, uint32_t batches) {
  Account& account = accounts_[tensor];
  const Batches taken = std::exchange(account.of[set % 2], {});
  account.given += taken.count;
  const uint64_t pending = account.of[0].count + account.of[1].count;
  if (taken.count == batches && account.given + pending == account.added) return taken;
  return Error{Code::kInternalError, "gradients of " + named(tensors_, tensor) + " are lost or doubled: of " +
                                         std::to_string(account.added) + " steps, updates have " +
                                         std::to_string(account.given) + ", the last of them " +
                                         std::to_string(taken.count) + " where the plan has " +
                                         std::to_string(batches) + ", and " + std::to_string(pending) + " are pending"};
}

uint32_t DelayedMemory::pending() const {
  uint32_t most = 0;
  for (const Account& account : accounts_) most = std::max(most, account.of[0].count + account.of[1].count);
  return most;
}

}  // namespace trestle
