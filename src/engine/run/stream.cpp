#include "engine/run/stream.h"

#include <algorithm>
#include <utility>

#include "base/cpu/prefetch.h"
#include "engine/run/engine.h"
#include "engine/run/operation.h"
#include "engine/run/progress.h"

namespace trestle {

namespace {

// Cleared items that a stream keeps. A program that queues more calls ahead allocates for them.
constexpr size_t kMostSpare = 64;

// Of a record that its stream never reached. The first call is notify()'s.
const Failure& never_reached() {
  static const Failure failure = std::make_shared<const Error>(
      Error{Code::kAborted, "the event's stream was destroyed before it reached the event"});
  return failure;
}

}  // namespace

// ---- records

Recording::~Recording() {
  const MutexLock lock(mutex_);
  if (notifications_.empty()) return;
  failure_ = never_reached();
  run(std::exchange(notifications_, {}));
}

Recording::Waiters Recording::finish(Failure failure) {
  const MutexLock lock(mutex_);
  failure_ = std::move(failure);
  complete_.store(true, std::memory_order_release);
  if (!notifications_.empty()) run(std::exchange(notifications_, {}));
  return std::exchange(waiters_, {});
}

// The functions may run when this record is gone.
void Recording::run(std::vector<Pending> notifications) {
  for (Pending& pending : notifications) {
    pending.end->failure = failure_;
    pending.end->user = user_;
    Progress::process().run_notification(std::move(pending.run));
  }
}

Status Recording::notify(Notification notification) {
  (void)never_reached();
  Pending pending;
  pending.end = std::make_shared<Pending::End>();
  pending.run.emplace_back(
      [end = pending.end, function = std::move(notification)] { function(end->failure, end->user); });
  const MutexLock lock(mutex_);
  notifications_.reserve(notifications_.size() + 1);
  TRY(Progress::process().expect_notification());
  notifications_.push_back(std::move(pending));
  if (complete()) run(std::exchange(notifications_, {}));
  return {};
}

bool Recording::await(Waiters& waiter) {
  const MutexLock lock(mutex_);
  if (complete()) return true;
  waiters_.splice(waiters_.end(), waiter);
  return false;
}

Status Event::record_outer(Stream& stream) {
  stands_for(TRY(stream.record_outer()));
  return {};
}

void Event::stands_for(std::shared_ptr<Recording> recording) {
  const MutexLock lock(mutex_);
  last_.swap(recording);
}

std::shared_ptr<Recording> Event::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

// ---- items

// The memory of `others` stays.
void ToActivate::assign(std::span<Operation* const> operations) {
  if (operations.empty()) return;
  others.assign(operations.begin() + 1, operations.end());
  first = operations.front();
}

void ToActivate::drop(const Operation* operation) {
  if (first == operation) first = nullptr;
  std::erase(others, operation);
}

void StreamItem::clear() {
  operations.clear();
  to_activate.first = nullptr;
  to_activate.others.clear();
  record.reset();
  wait.reset();
  waiter.clear();
  failure.reset();
  counted = Counted::kNot;
  outer = {};
  reserved = false;
}

// ---- appending

void Stream::enqueue(std::span<Operation* const> operations) {
  push([&](StreamItem& item) { put_in(item, operations); });
}

void Stream::enqueue(std::span<Operation* const> operations, StreamEntry&& entry) {
  if (entry.item_ == nullptr) return enqueue(operations);
  fill_in(entry, [&](StreamItem& item) { put_in(item, operations); });
}

void Stream::put_in(StreamItem& item, std::span<Operation* const> operations) {
  item.operations.reserve(operations.size());
  item.to_activate.assign(operations);
  item.operations.assign(operations.begin(), operations.end());
  for (Operation* operation : operations) {
    operation->item = &item;
    operation->stream.store(this, std::memory_order_release);
  }
}

std::shared_ptr<Recording> Stream::record() {
  auto recording = std::make_shared<Recording>(weak_from_this(), last_user());
  push([&](StreamItem& item) { item.record = recording; });
  return recording;
}

void Stream::wait_for(std::shared_ptr<Recording> recording) {
  if (recording == nullptr) return;
  push([&](StreamItem& item) {
    item.waiter.assign(1, weak_from_this());
    item.wait = std::move(recording);
  });
}

void Stream::used_by(Engine& engine) {
  if (last_user_key_.load(std::memory_order_relaxed) == &engine) return;
  const MutexLock lock(mutex_);
  last_user_ = engine.weak_from_this();
  last_user_key_.store(&engine, std::memory_order_relaxed);
}

std::weak_ptr<Engine> Stream::last_user() const {
  const MutexLock lock(mutex_);
  return last_user_;
}

// Once the item is queued, nothing may throw: the caller would take that for an item that is not queued.
template <class F>
void Stream::push(F&& fill) {
  Consequences then;
  {
    const MutexLock lock(mutex_);
    if (spare_.empty()) spare_.emplace_back();  // may throw, as the next
    fill(spare_.front());
    count(spare_.front());
    items_.splice(items_.end(), spare_, spare_.begin());
    if (!spare_.empty()) prefetch(&spare_.front(), &spare_.front() + 1);  // for the next call
    pending_.fetch_add(1, std::memory_order_acq_rel);
    then = pump_locked();
  }
  carry_out(then);
}

// ---- moving on

// The first failure stays.
void Stream::take_over(Failure failure) {
  if (!failure || failure_) return;
  failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
}

// Counts an item either as one whose operations are all of the engine only_user_, or as one of others. A place that was
// taken for a call may still become any kind of item, so it counts as one of others.
void Stream::count(StreamItem& item) {
  discount(item);
  const Engine* user = nullptr;
  bool is_mixed = item.reserved || item.wait != nullptr;
  for (Operation* const operation : item.operations) {
    const Engine* const engine = &operation->engine();
    is_mixed |= user != nullptr && engine != user;
    user = engine;
  }
  if (user == nullptr && !is_mixed) return;
  if (of_user_ == 0) only_user_ = user;
  const bool of_user = !is_mixed && user == only_user_;
  item.counted = of_user ? StreamItem::Counted::kOfUser : StreamItem::Counted::kOfOthers;
  ++(of_user ? of_user_ : of_others_);
}

void Stream::discount(StreamItem& item) {
  const auto counted = std::exchange(item.counted, StreamItem::Counted::kNot);
  if (counted == StreamItem::Counted::kOfUser) --of_user_;
  if (counted == StreamItem::Counted::kOfOthers) --of_others_;
}

bool Stream::takes_kernels_of(const Engine& engine) const {
  const MutexLock lock(mutex_);
  if (!outer_->has_kernels() || failure_ || outer_failure_) return false;
  return of_others_ == 0 && (of_user_ == 0 || only_user_ == &engine);
}

void Stream::pass_head() {
  take_over(std::move(items_.front().failure));
  discount(items_.front());
  if (items_.front().outer.gate) outer_->open(*items_.front().outer.gate);
  if (spare_.size() < kMostSpare) {
    items_.front().clear();
    spare_.splice(spare_.begin(), items_, items_.begin());
  } else {
    items_.pop_front();
  }
  head_active_ = false;
  pending_.fetch_sub(1, std::memory_order_acq_rel);
}

Stream::Consequences Stream::pump_locked() {
  Consequences then;
  while (!items_.empty()) {
    StreamItem& head = items_.front();
    if (head.reserved || !has_arrived(head)) return then;
    if (!head.operations.empty()) {
      if (head_active_) return then;
      then.held_back_by = failure_;
      then.to_activate = std::exchange(head.to_activate, {});
      head_active_ = true;
      return then;
    }
    if (head.wait) {
      if (!head.wait->await(head.waiter)) return then;
      take_over(head.wait->failure());
    }
    const std::shared_ptr<Recording> record = head.record;
    pass_head();  // first: a thread that sees the record complete must find the stream behind it
    if (record != nullptr) {
      then.to_wake.splice(then.to_wake.end(), record->finish(failure_));
    }
  }
  return then;
}

void Stream::pump() {
  Consequences then;
  {
    const MutexLock lock(mutex_);
    then = pump_locked();
  }
  carry_out(then);
}

void Stream::carry_out(const Consequences& then) {
  const auto activate = [&then](Operation& operation) {
    if (then.held_back_by) operation.held_back_by = then.held_back_by;
    operation.engine().activate(operation);
  };
  if (then.to_activate.first != nullptr) activate(*then.to_activate.first);
  for (Operation* operation : then.to_activate.others) activate(*operation);
  for (const auto& waiter : then.to_wake) {
    if (auto stream = waiter.lock()) stream->pump();
  }
}

void Stream::operation_done(Operation& operation, const Failure& failure) {
  {
    const MutexLock lock(mutex_);
    StreamItem* item = operation.item;
    CHECK(!items_.empty() && &items_.front() == item, "an operation finished that is not at the head of its stream");
    if (failure != nullptr && item->failure == nullptr) item->failure = failure;
    std::erase(item->operations, &operation);
    if (!item->operations.empty()) return;
    pass_head();
    if (items_.empty()) return;
  }
  pump();
}

bool Stream::cancel(Operation& operation, const Failure& failure) {
  {
    const MutexLock lock(mutex_);
    const auto place = std::find_if(items_.begin(), items_.end(), [&](const auto& i) { return &i == operation.item; });
    if (place == items_.end() || (place == items_.begin() && head_active_)) return false;
    // The item stays in its place even without operations, so that records before it do not get its failure.
    if (!place->failure) place->failure = failure;
    std::erase(place->operations, &operation);
    place->to_activate.drop(&operation);
    // Nothing is left here that would have to wait for the outer stream, which may never come.
    if (place->operations.empty()) need_not_arrive(*place);
  }
  pump();
  return true;
}

// ---- failures

std::optional<Error> Stream::tell_failure() {
  const MutexLock lock(mutex_);
  std::optional<Error> told;
  if (failure_) told = *failure_;  // without memory for it the failure stays
  if (!items_.empty()) return told;
  failed_.store(false, std::memory_order_release);
  failure_.reset();
  return told;
}

Status Stream::refusal() const {
  const MutexLock lock(mutex_);
  if (!failure_) return {};
  return Error{failure_->code,
               "the stream takes no calls until StreamSynchronize or StreamQuery has returned its failure: " +
                   failure_->message};
}

std::shared_ptr<Engine> Stream::head_engine() {
  const MutexLock lock(mutex_);
  if (items_.empty() || items_.front().operations.empty()) return nullptr;
  return items_.front().operations.front()->engine().shared_from_this();
}

// The stream that the head waits for; nullptr: it does not wait for one.
std::shared_ptr<Stream> Stream::look(Head& head) {
  const MutexLock lock(mutex_);
  if (items_.empty()) return nullptr;
  const StreamItem& item = items_.front();
  if (item.operations.empty()) return item.wait == nullptr ? nullptr : item.wait->stream();
  Operation& first = *item.operations.front();
  head = {first.engine().shared_from_this(), first.key(), waits_for_outer() ? outer_->device() : -1};
  return nullptr;
}

Stream::Head Stream::head() {
  constexpr int kMostStreams = 64;  // a bound, as streams may wait for each other in a circle
  Head head;
  std::shared_ptr<Stream> at = look(head);
  for (int i = 0; at != nullptr && i < kMostStreams; ++i) at = at->look(head);
  return head;
}

}  // namespace trestle
