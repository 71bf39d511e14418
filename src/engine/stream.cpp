#include "engine/stream.h"

#include <algorithm>

#include "engine/engine.h"
#include "engine/operation.h"

namespace trestle {

std::shared_ptr<Stream> Event::stream() {
  const MutexLock lock(mutex_);
  return recorded_.lock();
}

void Stream::enqueue(std::vector<Operation*> operations) {
  auto item = std::make_unique<StreamItem>();
  for (Operation* operation : operations) {
    operation->item = item.get();
    operation->stream.store(this, std::memory_order_release);
  }
  item->operations = std::move(operations);
  push(std::move(item));
}

void Stream::record(const std::shared_ptr<Event>& event) {
  auto item = std::make_unique<StreamItem>();
  {
    const MutexLock lock(event->mutex_);
    item->generation = ++event->generation_;
    event->open_.push_back(item->generation);
    event->recorded_ = weak_from_this();
    event->complete_.store(false, std::memory_order_release);
  }
  item->record = event;
  push(std::move(item));
}

void Stream::wait_for(const std::shared_ptr<Event>& event) {
  auto item = std::make_unique<StreamItem>();
  {
    const MutexLock lock(event->mutex_);
    item->generation = event->generation_;
  }
  item->wait = event;
  push(std::move(item));
}

void Stream::push(std::unique_ptr<StreamItem> item) {
  {
    const MutexLock lock(mutex_);
    pending_.fetch_add(1, std::memory_order_acq_rel);
    items_.push_back(std::move(item));
  }
  pump();
}

// True if the record that was waited for is done, whatever was recorded since; else this stream is woken when it is.
bool Stream::await(StreamItem& item) {
  Event& event = *item.wait;
  const MutexLock lock(event.mutex_);
  if (std::find(event.open_.begin(), event.open_.end(), item.generation) == event.open_.end()) return true;
  event.waiters_.push_back(weak_from_this());
  return false;
}

bool Stream::pump_locked(std::vector<std::weak_ptr<Stream>>& to_wake, std::vector<Operation*>& to_activate) {
  while (!items_.empty()) {
    StreamItem& head = *items_.front();
    if (!head.operations.empty()) {
      if (head_active_) return false;
      head_active_ = true;
      to_activate = head.operations;
      return true;
    }
    if (head.wait && !await(head)) return false;
    if (head.record) {
      const MutexLock lock(head.record->mutex_);
      std::erase(head.record->open_, head.generation);
      if (head.record->generation_ == head.generation) head.record->complete_.store(true, std::memory_order_release);
      to_wake.insert(to_wake.end(), head.record->waiters_.begin(), head.record->waiters_.end());
      head.record->waiters_.clear();
    }
    items_.pop_front();
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
  return false;
}

void Stream::pump() {
  std::vector<std::weak_ptr<Stream>> to_wake;
  std::vector<Operation*> to_activate;
  {
    const MutexLock lock(mutex_);
    pump_locked(to_wake, to_activate);
  }
  for (Operation* operation : to_activate) operation->engine().activate(*operation);
  for (const auto& waiter : to_wake) {
    if (auto stream = waiter.lock()) stream->pump();
  }
}

void Stream::operation_done(Operation& operation, const Error* error) {
  {
    const MutexLock lock(mutex_);
    if (error != nullptr && !error_) error_ = *error;
    StreamItem* item = operation.item;
    CHECK(!items_.empty() && items_.front().get() == item,
          "an operation finished that is not at the head of its stream");
    std::erase(item->operations, &operation);
    if (!item->operations.empty()) return;
    items_.pop_front();
    head_active_ = false;
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
  pump();
}

bool Stream::cancel(Operation& operation, const Error& error) {
  {
    const MutexLock lock(mutex_);
    const auto place =
        std::find_if(items_.begin(), items_.end(), [&](const auto& i) { return i.get() == operation.item; });
    if (place == items_.end() || (place == items_.begin() && head_active_)) return false;
    if (!error_) error_ = error;
    std::erase((*place)->operations, &operation);
    if (!(*place)->operations.empty()) return true;
    items_.erase(place);
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
  pump();
  return true;
}

std::optional<Error> Stream::take_error() {
  const MutexLock lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

std::shared_ptr<Engine> Stream::head_engine() {
  const MutexLock lock(mutex_);
  if (items_.empty() || items_.front()->operations.empty()) return nullptr;
  return items_.front()->operations.front()->engine().shared_from_this();
}

}  // namespace trestle
