// A stream's places in its outer stream.
#include <algorithm>

#include "engine/run/engine.h"
#include "engine/run/operation.h"
#include "engine/run/stream.h"
#include "engine/run/stream_poller.h"

namespace trestle {

Result<std::shared_ptr<Stream>> Stream::on(std::unique_ptr<OuterStream> outer) {
  const std::shared_ptr<Stream> stream(new Stream(std::move(outer)));
  TRY(StreamPoller::process().add(stream));
  return stream;
}

// The poller need not look at the stream of a place: it never waits for a mark.
Result<std::shared_ptr<Stream>> Stream::capture(std::shared_ptr<CaptureLane> lane, std::shared_ptr<GraphCalls> calls) {
  const MutexLock in_order(entry_mutex_);
  std::unique_ptr<OuterStream> place = TRY(outer_->capture(std::move(lane), std::move(calls)));
  std::shared_ptr<Stream> stream(new Stream(std::move(place)));
  StreamPoller::process().add_place(stream);
  return stream;
}

// A stream that is dropped with calls on it, because the process ends, must not hold the outer stream for ever. The
// thread that ended its last call may not have left operation_done() yet.
Stream::~Stream() {
  const MutexLock lock(mutex_);
  for (const StreamItem& item : items_) {
    if (item.outer.gate) outer_->open(*item.outer.gate);
  }
}

// An open gate also lets those before it go, which may be of engines that are well.
void Stream::let_outer_go(const Engine* only, const Error& why) {
  const MutexLock lock(mutex_);
  const auto is_held = [](const StreamItem& item) { return item.outer.gate.has_value(); };
  if (only == nullptr && std::ranges::any_of(items_, is_held)) take_over(std::make_shared<const Error>(why));
  for (StreamItem& item : items_) {
    const auto is_of_engine = [only](Operation* one) { return &one->engine() == only; };
    const bool is_sure = !item.reserved && item.wait == nullptr && std::ranges::all_of(item.operations, is_of_engine);
    if (only != nullptr && !is_sure) return;
    if (item.outer.gate) outer_->open(*item.outer.gate);
    item.outer.gate.reset();
  }
}

std::vector<std::shared_ptr<Engine>> Stream::engines() const {
  std::vector<std::shared_ptr<Engine>> engines;
  const MutexLock lock(mutex_);
  for (const StreamItem& item : items_) {
    for (Operation* const operation : item.operations) {
      auto engine = operation->engine().shared_from_this();
      if (std::ranges::find(engines, engine) == engines.end()) engines.push_back(std::move(engine));
    }
  }
  return engines;
}

// The item is made first: once the outer stream is held, nothing may fail.
template <class Put>
Result<StreamEntry> Stream::enter_by(Put&& put) {
  const MutexLock in_order(entry_mutex_);
  std::list<StreamItem> made(1);
  std::shared_ptr<Stream> self = shared_from_this();
  made.front().outer = TRY(put());
  made.front().reserved = true;
  StreamItem* const item = &made.front();
  const MutexLock lock(mutex_);
  count(*item);
  items_.splice(items_.end(), made);
  pending_.fetch_add(1, std::memory_order_acq_rel);
  return StreamEntry(std::move(self), item);
}

Result<StreamEntry> Stream::enter(bool mark, bool gate) {
  return enter_by([&] { return outer_->put(mark, gate); });
}

// Nothing else is queued between the question and the answer.
Result<StreamEntry> Stream::enter_kernel(const Engine& engine, const std::function<Status(const OuterPlace&)>& submit) {
  return enter_by([&] { return takes_kernels_of(engine) ? outer_->put_kernel(submit) : outer_->put(true, true); });
}

StreamEntry::~StreamEntry() {
  if (item_ != nullptr) stream_->give_up(*item_);
}

void Stream::give_up(StreamItem& item) {
  {
    const MutexLock lock(mutex_);
    item.reserved = false;
    need_not_arrive(item);
  }
  pump();
}

// Whether the head still waits is found out by the pump() that follows.
void Stream::need_not_arrive(StreamItem& item) {
  item.outer.mark.reset();
  waits_for_outer_.store(false, std::memory_order_seq_cst);
}

Result<std::shared_ptr<Recording>> Stream::record_outer() {
  if (outer_ == nullptr) return record();
  auto recording = std::make_shared<Recording>(weak_from_this(), last_user());
  StreamEntry entry = TRY(enter(true, false));
  fill_in(entry, [&](StreamItem& item) { item.record = recording; });
  return recording;
}

Status Stream::wait_outer(std::shared_ptr<Recording> recording) {
  if (outer_ == nullptr || recording == nullptr) {
    wait_for(std::move(recording));
    return {};
  }
  std::list<std::weak_ptr<Stream>> waiter{weak_from_this()};
  StreamEntry entry = TRY(enter(false, true));
  fill_in(entry, [&](StreamItem& item) {
    item.waiter = std::move(waiter);
    item.wait = std::move(recording);
  });
  return {};
}

void Stream::check_outer() {
  Status checked = outer_->check();
  if (checked.ok()) return;
  {
    const MutexLock lock(mutex_);
    outer_failed(std::move(checked).error());
  }
  pump();
}

// The first failure stays. Its place was made with the stream.
void Stream::outer_failed(Error error) {
  if (outer_failure_ != nullptr) return;
  *outer_error_ = std::move(error);
  outer_failure_ = outer_error_;
}

// Whether the outer stream has come to the item. One that has failed never will. Behind a failure nothing runs, so
// nothing has to wait.
bool Stream::has_arrived(StreamItem& head) {
  if (!head.outer.mark) return true;
  if (!failure_ && outer_failure_ == nullptr) {
    Result<bool> reached = outer_->has_reached(*head.outer.mark);
    if (reached.ok() && !reached.value()) {
      if (!waits_for_outer_.exchange(true, std::memory_order_seq_cst)) StreamPoller::process().ring();
      return false;
    }
    if (!reached.ok()) outer_failed(std::move(reached).error());
  }
  take_over(outer_failure_);
  need_not_arrive(head);
  return true;
}

}  // namespace trestle
