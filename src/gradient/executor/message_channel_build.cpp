// MessageChannel: makes buffers and requests of a plan's messages.
#include <algorithm>

#include "base/check.h"
#include "gradient/executor/message_channel.h"

namespace trestle {
Status MessageChannel::build() {
  TRY(checked(trestleCommCount(use_.comm, &ranks_)));
  TRY(checked(trestleCommUserRank(use_.comm, &rank_)));
  TRY(checked(trestleStreamCreate(stream_.out())));
  const bool halves = list_.scatters > 0;
  arena_bytes_ = room();
  if (arena_bytes_ > 0) TRY(checked(trestleMemAlloc(arena_.out(), arena_bytes_)));
  if (halves && !list_.shared_groups) lay_out_shards();
  messages_.resize(list_.messages.size());
  for (size_t m = 0; m < messages_.size(); ++m) {
    Message& message = messages_[m];
    message.kind = list_.messages[m].kind;
    message.end = TRY(MessageEnd::make(use_.comm, use_.bell));
    if (!halves) {
      TRY(build_whole(list_.messages[m], message));
    } else if (list_.shared_groups) {
      TRY(build_shared(m));
    } else {
      TRY(build_sharded(list_.messages[m], message));
    }
  }
  return {};
}

uint64_t MessageChannel::room() const {
  const bool sharded = list_.scatters > 0 && !list_.shared_groups;
  uint64_t bytes = 0;
  for (size_t m = 0; m < list_.messages.size(); ++m) {
    const bool second_half = list_.shared_groups && list_.scatters > 0 && m >= list_.scatters;
    if (!second_half) bytes += room_of(list_.messages[m]);
  }
  for (size_t t = 0; sharded && t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    bytes += whole_lines(shard_elements(type) * size_of(type));
  }
  return bytes;
}

uint64_t MessageChannel::room_of(const StepMessage& planned) const {
  uint64_t bytes = 0;
  if (list_.scatters > 0 && !list_.shared_groups) {
    const auto ranks = static_cast<uint32_t>(ranks_);
    for (const ShardedLayout& layout :
         sharded_layouts(use_.tensors, planned.pieces, ranks, static_cast<uint32_t>(rank_))) {
      bytes += whole_lines(layout.whole.count * size_of(layout.whole.type));
    }
    return bytes;
  }
  for (const FusedLayout& layout : whole_layouts(use_.tensors, planned.pieces)) {
    if (own_memory(use_.tensors, layout) == nullptr) bytes += whole_lines(layout.count * size_of(layout.type));
  }
  return bytes;
}

uint64_t MessageChannel::shard_elements(DataType type) const {
  uint64_t elements = 0;
  for (const TensorEntry& tensor : use_.tensors) {
    if (tensor.type == type) elements += shard_length(tensor.count, static_cast<uint32_t>(ranks_));
  }
  return elements;
}

std::byte* MessageChannel::slice(uint64_t bytes) {
  std::byte* const data = static_cast<std::byte*>(arena_.get()) + used_;
  used_ += whole_lines(bytes);
  CHECK(used_ <= arena_bytes_, "a plan's buffers take more than room() has counted");
  return data;
}

size_t MessageChannel::add_buffer(FusedLayout layout, bool may_use_own_memory) {
  Buffer buffer;
  if (may_use_own_memory) buffer.data = own_memory(use_.tensors, layout);
  buffer.own_memory = buffer.data != nullptr;
  if (!buffer.own_memory) buffer.data = slice(layout.count * size_of(layout.type));
  buffer.layout = std::move(layout);
  buffers_.push_back(std::move(buffer));
  return buffers_.size() - 1;
}

Status MessageChannel::build_whole(const StepMessage& planned, Message& message) {
  for (FusedLayout& layout : whole_layouts(use_.tensors, planned.pieces)) {
    const size_t index = add_buffer(std::move(layout), true);
    const Buffer& buffer = buffers_[index];
    const trestleDataType_t type = public_type(buffer.layout.type);
    CoreRequest request;
    TRY(checked(trestleAllReduceInit(buffer.data, buffer.data, buffer.layout.count, type,
                                     static_cast<trestleRedOp_t>(use_.settings.op), use_.comm, stream_.get(),
                                     request.out())));
    requests_.push_back(std::move(request));
    const uint64_t bytes = buffer.layout.count * size_of(buffer.layout.type);
    message.transfers.push_back({index, index, requests_.size() - 1, false, bytes});
  }
  return {};
}

// Both halves of a group are one request. The reduce-scatters come first, beginning with L-1's group. The all-gathers
// come in the opposite order.
Status MessageChannel::build_shared(size_t index) {
  Message& message = messages_[index];
  if (index >= list_.scatters) {
    const Message& first_half = messages_[messages_.size() - 1 - index];
    for (const Transfer& transfer : first_half.transfers) {
      message.transfers.push_back({kNone, transfer.packed, transfer.request, true, transfer.bytes});
    }
    return {};
  }
  for (FusedLayout& layout : whole_layouts(use_.tensors, list_.messages[index].pieces)) {
    const size_t at = add_buffer(std::move(layout), true);
    const Buffer& buffer = buffers_[at];
    CoreRequest request;
    TRY(checked(trestleAllReduceStartInit(
        buffer.data, buffer.data, buffer.layout.count, public_type(buffer.layout.type),
        static_cast<trestleRedOp_t>(use_.settings.op), use_.comm, stream_.get(), request.out())));
    requests_.push_back(std::move(request));
    const uint64_t bytes = buffer.layout.count * size_of(buffer.layout.type);
    message.transfers.push_back({at, kNone, requests_.size() - 1, false, bytes});
    TRY(add_shards(buffer.layout, buffer.data, message));
  }
  return {};
}

Status MessageChannel::add_shards(const FusedLayout& layout, std::byte* data, Message& message) {
  int count = 0;
  TRY(checked(trestleShardRanges(use_.comm, rank_, layout.count, public_type(layout.type), nullptr, &count)));
  std::vector<trestleRange_t> ranges(static_cast<size_t>(count));
  TRY(checked(trestleShardRanges(use_.comm, rank_, layout.count, public_type(layout.type), ranges.data(), &count)));
  for (const trestleRange_t& range : ranges) {
    for (const FusedSpan& span : clipped(layout.spans, range.offset, range.offset + range.count)) {
      message.shards.push_back({span, layout.type, data + span.in_buffer * size_of(layout.type)});
    }
  }
  return {};
}

// The shards of all tensors of one type lie together, in the tensors' order. So those of any run of tensors do, too.
void MessageChannel::lay_out_shards() {
  const auto ranks = static_cast<uint32_t>(ranks_);
  shard_of_.resize(use_.tensors.size());
  for (size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    const uint64_t elements = shard_elements(type);
    if (elements == 0) continue;
    std::byte* at = slice(elements * size_of(type));
    for (size_t i = 0; i < use_.tensors.size(); ++i) {
      if (use_.tensors[i].type != type) continue;
      shard_of_[i] = at;
      at += shard_length(use_.tensors[i].count, ranks) * size_of(type);
    }
  }
}

Status MessageChannel::build_sharded(const StepMessage& planned, Message& message) {
  const bool scatter = planned.kind == MessageKind::kReduceScatter;
  for (ShardedLayout& layout :
       sharded_layouts(use_.tensors, planned.pieces, static_cast<uint32_t>(ranks_), static_cast<uint32_t>(rank_))) {
    const size_t size = size_of(layout.whole.type);
    std::byte* const shard = shard_of_[layout.first_tensor];
    for (const FusedSpan& span : layout.own) {
      if (scatter) message.shards.push_back({span, layout.whole.type, shard + span.in_buffer * size});
    }
    const size_t at = add_buffer(std::move(layout.whole), false);
    const Buffer& buffer = buffers_[at];
    const trestleDataType_t type = public_type(buffer.layout.type);
    CoreRequest request;
    TRY(checked(scatter ? trestleReduceScatterInit(buffer.data, shard, layout.block, type,
                                                   static_cast<trestleRedOp_t>(use_.settings.op), use_.comm,
                                                   stream_.get(), request.out())
                        : trestleAllGatherInit(shard, buffer.data, layout.block, type, use_.comm, stream_.get(),
                                               request.out())));
    requests_.push_back(std::move(request));
    const uint64_t bytes = layout.block * size * static_cast<uint64_t>(ranks_);
    message.transfers.push_back({scatter ? at : kNone, scatter ? kNone : at, requests_.size() - 1, false, bytes});
  }
  return {};
}

}  // namespace trestle
