#include "gradient/executor/run/sparse_channel.h"

#include <cstring>

#include "base/clock.h"
#include "compress/topk.h"

namespace trestle {
Result<std::unique_ptr<SparseChannel>> SparseChannel::make(const Use& use, const StepMessages& list) {
  std::unique_ptr<SparseChannel> channel(new SparseChannel(use, list));
  TRY(channel->build());
  return channel;
}

Status SparseChannel::build() {
  TRY(checked(trestleCommCount(use_.comm, &ranks_)));
  TRY(checked(trestleCommUserRank(use_.comm, &rank_)));
  named_ = TRY(MessageEnd::make(use_.comm, use_.bell));
  if (use_.collective == SparseCollective::kRing) {
    settings_.op = trestleSum;
    const ChannelUse channel{use_.comm, use_.memory.travelling(), settings_, nullptr, use_.counts, use_.bell};
    values_ = TRY(MessageChannel::make(channel, list_));
    return {};
  }
  TRY(checked(trestleStreamCreate(stream_.out())));
  for (size_t m = 0; m < list_.messages.size(); ++m) ends_.push_back(TRY(MessageEnd::make(use_.comm, use_.bell)));
  return gathers() ? build_gathered() : Status();
}

SparseChannel::Gathered SparseChannel::laid_out(const TensorGroup& tensors) const {
  Gathered all;
  for (size_t t = 0; t < SparseMemory::kSumTypes.size(); ++t) {
    all.values[t] = all.part_bytes;
    all.part_bytes += whole_lines(use_.memory.values_of(tensors, SparseMemory::kSumTypes[t]).size());
  }
  all.indices = all.part_bytes;
  all.part_bytes += whole_lines(use_.memory.indices_of(tensors).size_bytes());
  return all;
}

Status SparseChannel::build_gathered() {
  uint64_t bytes = 0;
  gathered_in_.resize(list_.tensors);
  for (uint32_t m = 0; m < list_.scatters; ++m) {
    const TensorGroup& tensors = list_.messages[m].tensors;
    for (uint32_t i = tensors.first; i <= tensors.last; ++i) gathered_in_[i] = m;
    gathered_.push_back(laid_out(tensors));
    bytes += gathered_.back().part_bytes * static_cast<uint64_t>(ranks_);
  }
  if (bytes == 0) return {};
  TRY(checked(trestleMemAlloc(parts_.out(), bytes)));
  auto* at = static_cast<std::byte*>(parts_.get());
  for (Gathered& one : gathered_) {
    one.parts = at;
    at += one.part_bytes * static_cast<uint64_t>(ranks_);
    one.request.emplace();
    TRY(checked(trestleAllGatherInit(one.parts + one.part_bytes * static_cast<uint64_t>(rank_), one.parts,
                                     one.part_bytes, trestleUint8, use_.comm, stream(), one.request->out())));
  }
  return {};
}

SparseChannel::~SparseChannel() {
  // Memory is in use until the library reports the end of each message. It does so also after a failure.
  waiting_.clear();
  while (naming_ || !started_.empty()) {
    const uint32_t before = use_.bell->count();
    const bool named = naming_ && named_->poll();
    if (named) naming_.reset();
    if (!poll_started() && !named) use_.bell->wait(before);
  }
}

// ---- running

Status SparseChannel::start(uint32_t message, uint64_t step, uint64_t turn) {
  waiting_.push_back({message, step, turn});
  return begin_next();
}

Status SparseChannel::begin_next() {
  while (!waiting_.empty() && !naming_) {
    TRY(begin(waiting_.front()));
    waiting_.pop_front();
  }
  return {};
}

Status SparseChannel::begin(const Waiting& next) {
  const bool names = !is_forward(next.message);
  if (names && (gathers() || root(next.turn) == rank_)) TRY(select(next));
  if (names && !gathers()) return name(next);
  const int64_t begin_ns = use_.trace.now_ns();
  if (!is_nothing(next.message)) TRY(gathers() ? send_gathered(next.message) : send_values(next));
  issued(next, begin_ns);
  return {};
}

Status SparseChannel::select(const Waiting& next) {
  const int64_t begin = monotonic_clock().now_ns();
  const TensorGroup& tensors = list_.messages[next.message].tensors;
  for (uint32_t i = tensors.first; i <= tensors.last; ++i) {
    if (use_.memory.elements(i) > 0) TRY(use_.memory.select(i));
  }
  use_.counts.add_compress_ns(monotonic_clock().now_ns() - begin);
  trace(TraceKind::kSelect, next, begin);
  return {};
}

Status SparseChannel::name(const Waiting& next) {
  const std::span<uint32_t> indices = use_.memory.indices_of(list_.messages[next.message].tensors);
  TRY(checked(trestleBroadcast(indices.data(), indices.data(), indices.size(), trestleUint32, root(next.turn),
                               use_.comm, stream())));
  TRY(named_->mark(stream()));
  naming_ = next;
  naming_->issued_ns = use_.trace.now_ns();
  use_.counts.messages.fetch_add(1, std::memory_order_relaxed);
  use_.counts.bytes.fetch_add(indices.size_bytes(), std::memory_order_relaxed);
  return {};
}

Status SparseChannel::send_named(const Waiting& named) {
  const int64_t begin_ns = use_.trace.now_ns();
  const TensorGroup& tensors = list_.messages[named.message].tensors;
  for (uint32_t i = tensors.first; i <= tensors.last; ++i) TRY(use_.memory.check_indices(i));
  take(named.message);
  TRY(send_values(named));
  issued(named, begin_ns);
  return {};
}

// Moves what travels out of the residuals. With the last message of a step, the step's gain is known.
void SparseChannel::take(uint32_t message) {
  const int64_t begin = monotonic_clock().now_ns();
  const TensorGroup& tensors = list_.messages[message].tensors;
  uint64_t sent = 0;
  for (uint32_t i = tensors.first; i <= tensors.last; ++i) {
    if (use_.memory.elements(i) == 0) continue;
    sent_square_ += use_.memory.take(i);
    sent += use_.memory.elements(i);
  }
  use_.counts.sent_elements.fetch_add(sent, std::memory_order_relaxed);
  use_.counts.add_compress_ns(monotonic_clock().now_ns() - begin);
  if (message + 1 < list_.scatters) return;
  use_.counts.gain.store(compression_gain(sent_square_, use_.counts.whole_square), std::memory_order_relaxed);
  sent_square_ = 0;
  use_.counts.whole_square = 0;
}

Status SparseChannel::send_values(const Waiting& what) {
  if (values_ != nullptr) return values_->start(what.message);
  const TensorGroup& tensors = list_.messages[what.message].tensors;
  for (const DataType type : SparseMemory::kSumTypes) {
    const std::span<std::byte> values = use_.memory.values_of(tensors, type);
    if (values.empty()) continue;
    std::byte* const data = values.data();
    const size_t count = values.size() / size_of(type);
    const int at = root(what.turn);
    TRY(checked(is_forward(what.message)
                    ? trestleBroadcast(data, data, count, public_type(type), at, use_.comm, stream())
                    : trestleReduce(data, data, count, public_type(type), trestleSum, at, use_.comm, stream())));
    use_.counts.bytes.fetch_add(values.size(), std::memory_order_relaxed);
  }
  use_.counts.messages.fetch_add(1, std::memory_order_relaxed);
  return ends_[what.message].mark(stream());
}

Status SparseChannel::send_gathered(uint32_t message) {
  const TensorGroup& tensors = list_.messages[message].tensors;
  take(message);
  Gathered& all = gathered_[message];
  std::byte* const own = all.parts + all.part_bytes * static_cast<uint64_t>(rank_);
  for (size_t t = 0; t < SparseMemory::kSumTypes.size(); ++t) {
    const std::span<std::byte> values = use_.memory.values_of(tensors, SparseMemory::kSumTypes[t]);
    if (!values.empty()) std::memcpy(own + all.values[t], values.data(), values.size());
  }
  const std::span<uint32_t> indices = use_.memory.indices_of(tensors);
  std::memcpy(own + all.indices, indices.data(), indices.size_bytes());
  TRY(checked(trestleRequestStart(all.request->get())));
  use_.counts.messages.fetch_add(1, std::memory_order_relaxed);
  use_.counts.bytes.fetch_add(all.part_bytes * static_cast<uint64_t>(ranks_), std::memory_order_relaxed);
  return ends_[message].mark(stream());
}

void SparseChannel::issued(const Waiting& what, int64_t begin_ns) {
  if (!is_nothing(what.message)) trace(TraceKind::kPack, what, begin_ns);
  started_.push_back(what);
  started_.back().issued_ns = use_.trace.now_ns();
}

// Notes an event that ends now.
void SparseChannel::trace(TraceKind kind, const Waiting& what, int64_t begin_ns) {
  if (!use_.trace.on()) return;
  use_.trace.note(
      {kind, what.message, 0, list_.messages[what.message].tensors, what.step, begin_ns, use_.trace.now_ns()});
}

std::optional<Status> SparseChannel::poll_started() {
  if (started_.empty()) return std::nullopt;
  const Waiting& first = started_.front();
  const bool nothing = is_nothing(first.message);
  std::optional<Status> end = values_ != nullptr ? values_->poll() : nothing ? Status() : ends_[first.message].poll();
  if (!end) return end;
  if (end->ok() && !nothing) trace(TraceKind::kTravel, first, first.issued_ns);
  started_.pop_front();
  return end;
}

std::optional<Status> SparseChannel::poll() {
  if (std::optional<Status> end = poll_started()) return end;
  if (!naming_) return std::nullopt;
  const std::optional<Status> named = named_->poll();
  if (!named) return std::nullopt;
  const Waiting now = *naming_;
  naming_.reset();
  if (!named->ok()) return named;
  trace(TraceKind::kIndices, now, now.issued_ns);
  if (use_.board.failure()) return std::nullopt;
  Status status = send_named(now);
  if (status.ok()) status = begin_next();
  if (!status.ok()) return status;
  return std::nullopt;
}

Status SparseChannel::finish(uint32_t message) {
  if (values_ != nullptr) return values_->finish(message);
  return gathers() && !is_forward(message) ? check_parts(message) : Status();
}

// ---- results

Status SparseChannel::check_parts(uint32_t message) const {
  const Gathered& all = gathered_[message];
  const TensorGroup& tensors = list_.messages[message].tensors;
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::byte* const part = all.parts + all.part_bytes * static_cast<uint64_t>(rank);
    const auto* indices = reinterpret_cast<const uint32_t*>(part + all.indices);
    for (uint32_t i = tensors.first; i <= tensors.last; ++i) {
      TRY(use_.memory.check_indices(i, indices));
      indices += use_.memory.elements(i);
    }
  }
  return {};
}

void SparseChannel::give(uint32_t tensor, std::byte* result) {
  const int64_t begin = monotonic_clock().now_ns();
  if (!gathers()) {
    use_.memory.give(tensor, result);
  } else {
    const Gathered& all = gathered_[gathered_in_[tensor]];
    const TensorGroup& tensors = list_.messages[gathered_in_[tensor]].tensors;
    const TensorEntry& own = use_.memory.travelling()[tensor];
    const size_t type = own.type == DataType::kFloat64 ? 1 : 0;
    const auto values = static_cast<uint64_t>(own.gradient - use_.memory.values_of(tensors, own.type).data());
    const auto indices = static_cast<uint64_t>(use_.memory.indices(tensor) - use_.memory.indices(tensors.first));
    std::vector<SparseMemory::Sent> ranks;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::byte* const part = all.parts + all.part_bytes * static_cast<uint64_t>(rank);
      ranks.push_back(
          {reinterpret_cast<const uint32_t*>(part + all.indices) + indices, part + all.values[type] + values});
    }
    use_.memory.give_sum(tensor, ranks, result);
  }
  use_.counts.add_compress_ns(monotonic_clock().now_ns() - begin);
}

Status SparseChannel::add_residuals() {
  use_.memory.share_residuals();
  for (const DataType type : SparseMemory::kSumTypes) {
    const std::span<std::byte> all = use_.memory.residuals(type);
    if (all.empty()) continue;
    TRY(checked(trestleAllReduce(all.data(), all.data(), all.size() / size_of(type), public_type(type), trestleSum,
                                 use_.comm, stream())));
    use_.counts.messages.fetch_add(1, std::memory_order_relaxed);
    use_.counts.bytes.fetch_add(all.size(), std::memory_order_relaxed);
  }
  TRY(named_->mark(stream()));
  naming_ = Waiting{};  // so that the destructor waits for the end, if this call does not
  for (;;) {
    const uint32_t before = use_.bell->count();
    if (const std::optional<Status> end = named_->poll()) {
      naming_.reset();
      return *end;
    }
    if (auto failure = use_.board.failure()) return *std::move(failure);
    use_.bell->wait(before);
  }
}

}  // namespace trestle
