#include "gradient/executor/message_channel.h"

#include <algorithm>
#include <cstring>

#include "gradient/executor/nan_count.h"

namespace trestle {

void TrafficCounts::note_update(const ResultAge& age) {
  const uint64_t batches = age.batches;
  delayed_updates.fetch_add(1, std::memory_order_relaxed);
  // Consecutive steps, so the ages are oldest, oldest - 1, ...
  age_sum.fetch_add(batches * age.oldest - batches * (batches - 1) / 2, std::memory_order_relaxed);
  oldest_age.store(std::max<uint64_t>(oldest_age.load(std::memory_order_relaxed), age.oldest),
                   std::memory_order_relaxed);
  delayed_batches.fetch_add(batches, std::memory_order_relaxed);
}

Result<std::unique_ptr<MessageChannel>> MessageChannel::make(const ChannelUse& use, const StepMessages& list) {
  std::unique_ptr<MessageChannel> channel(new MessageChannel(use, list));
  TRY(channel->build());
  return channel;
}

MessageChannel::~MessageChannel() {
  // A message's buffers are in use until the library reports its end. It reports every end, also after a failure.
  while (!started_.empty()) {
    const uint32_t before = use_.bell->count();
    if (!poll()) use_.bell->wait(before);
  }
}

// ---- running

Status MessageChannel::start(uint32_t number) {
  Message& message = messages_[number];
  for (const Transfer& transfer : message.transfers) {
    if (transfer.packed != kNone && use_.settings.count_nans) count_nans_in(buffers_[transfer.packed]);
    if (transfer.packed != kNone) pack(buffers_[transfer.packed]);
    const trestleRequest_t request = requests_[transfer.request].get();
    TRY(checked(transfer.second_half ? trestleAllReduceFinish(request, stream_.get()) : trestleRequestStart(request)));
    use_.counts.bytes.fetch_add(transfer.bytes, std::memory_order_relaxed);
  }
  TRY(message.end->mark(stream_.get()));
  started_.push_back(number);
  use_.counts.messages.fetch_add(1, std::memory_order_relaxed);
  return {};
}

std::optional<Status> MessageChannel::poll() {
  if (started_.empty()) return std::nullopt;
  std::optional<Status> end = messages_[started_.front()].end->poll();
  if (end) started_.pop_front();
  return end;
}

Status MessageChannel::finish(uint32_t number) {
  const Message& message = messages_[number];
  const bool updates = static_cast<bool>(use_.settings.update);
  for (const Shard& shard : message.shards) {
    if (updates) TRY(update_shard(shard));
  }
  for (const Transfer& transfer : message.transfers) {
    if (transfer.unpacked == kNone) continue;
    const Buffer& buffer = buffers_[transfer.unpacked];
    if (updates && message.kind == MessageKind::kAllReduce) {
      TRY(update_whole(buffer));
    } else {
      unpack(buffer);
    }
  }
  return {};
}

// Where a step's gradient lies.
std::byte* MessageChannel::memory_of(uint32_t tensor) const {
  std::byte* const given = use_.board == nullptr ? nullptr : use_.board->gradient(tensor);
  return given != nullptr ? given : use_.tensors[tensor].gradient;
}

void MessageChannel::count_nans_in(const Buffer& buffer) {
  const size_t size = size_of(buffer.layout.type);
  for (const FusedSpan& span : buffer.layout.spans) {
    const uint64_t nans = count_nans(memory_of(span.tensor) + span.in_tensor * size, span.count, buffer.layout.type);
    use_.counts.nans.fetch_add(nans, std::memory_order_relaxed);
  }
}

void MessageChannel::pack(const Buffer& buffer) {
  if (buffer.own_memory) return;
  const size_t size = size_of(buffer.layout.type);
  for (const FusedSpan& span : buffer.layout.spans) {
    std::memcpy(buffer.data + span.in_buffer * size, memory_of(span.tensor) + span.in_tensor * size, span.count * size);
    use_.counts.copied_bytes.fetch_add(span.count * size, std::memory_order_relaxed);
  }
}

void MessageChannel::unpack(const Buffer& buffer) {
  const bool to_parameters = static_cast<bool>(use_.settings.update);
  if (buffer.own_memory && !to_parameters) return;
  const size_t size = size_of(buffer.layout.type);
  for (const FusedSpan& span : buffer.layout.spans) {
    std::byte* const to = to_parameters ? use_.tensors[span.tensor].parameter : memory_of(span.tensor);
    std::memcpy(to + span.in_tensor * size, buffer.data + span.in_buffer * size, span.count * size);
    use_.counts.copied_bytes.fetch_add(span.count * size, std::memory_order_relaxed);
  }
}

Status MessageChannel::update_whole(const Buffer& buffer) {
  const size_t size = size_of(buffer.layout.type);
  for (const FusedSpan& span : buffer.layout.spans) {
    std::byte* const parameter = use_.tensors[span.tensor].parameter + span.in_tensor * size;
    TRY(use_.settings.update(span.tensor, span.in_tensor, span.count, buffer.data + span.in_buffer * size, parameter,
                             {}));
  }
  return {};
}

// The updated parameters take the gradients' place, and the second half gathers them.
Status MessageChannel::update_shard(const Shard& shard) {
  const size_t size = size_of(shard.type);
  const FusedSpan& span = shard.span;
  std::byte* const parameter = use_.tensors[span.tensor].parameter + span.in_tensor * size;
  TRY(use_.settings.update(span.tensor, span.in_tensor, span.count, shard.data, parameter, {}));
  std::memcpy(shard.data, parameter, span.count * size);
  return {};
}

}  // namespace trestle
