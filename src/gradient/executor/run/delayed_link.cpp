#include "gradient/executor/run/delayed_link.h"

namespace trestle {

Result<std::unique_ptr<DelayedLink>> DelayedLink::make(const Use& use, const std::vector<DeftItem>& items,
                                                       const std::vector<bool>& carried) {
  std::unique_ptr<DelayedLink> link(new DelayedLink(use));
  TRY(link->checked(trestleStreamCreate(link->stream_.out())));
  link->messages_.resize(2 * items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (!carried[i]) continue;
    for (const uint64_t set : {0, 1}) TRY(link->build(items[i], set, link->messages_[2 * i + set]));
  }
  return link;
}

Status DelayedLink::build(const DeftItem& item, uint64_t set, Message& message) {
  message.end = TRY(MessageEnd::make(use_.comm, use_.bell));
  for (const DelayedMemory::Run& run : use_.memory.runs(item.bucket, item.part, item.parts)) {
    std::byte* const data = use_.memory.at(run, set);
    CoreRequest request;
    TRY(checked(trestleAllReduceInit(data, data, run.count, static_cast<trestleDataType_t>(run.type),
                                     static_cast<trestleRedOp_t>(use_.op), use_.comm, stream_.get(), request.out())));
    message.requests.push_back(std::move(request));
    message.bytes += run.count * size_of(run.type);
  }
  return {};
}

DelayedLink::~DelayedLink() {
  // The sums are in use until the library reports the end of each message. It does so also after a failure.
  while (!started_.empty()) {
    const uint32_t before = use_.bell->count();
    if (!poll()) use_.bell->wait(before);
  }
}

Status DelayedLink::start(uint32_t item, uint64_t set) {
  const size_t number = 2 * size_t{item} + set % 2;
  Message& message = messages_[number];
  for (const CoreRequest& request : message.requests) TRY(checked(trestleRequestStart(request.get())));
  TRY(message.end->mark(stream_.get()));
  started_.push_back(number);
  if (message.requests.empty()) return {};  // a bucket without bytes
  use_.counts.messages.fetch_add(1, std::memory_order_relaxed);
  use_.counts.bytes.fetch_add(message.bytes, std::memory_order_relaxed);
  return {};
}

std::optional<Status> DelayedLink::poll() {
  if (started_.empty()) return std::nullopt;
  std::optional<Status> end = messages_[started_.front()].end->poll();
  if (end) started_.pop_front();
  return end;
}

}  // namespace trestle
