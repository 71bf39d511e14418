#include "transport/loopback/registry.h"

#include <map>
#include <utility>

#include "base/check.h"
#include "base/fork.h"
#include "base/mutex.h"

namespace trestle {
namespace {

struct LoopbackRegistry {
  Mutex mutex;
  std::map<std::pair<std::string, int32_t>, std::weak_ptr<Mailbox>> places TRESTLE_GUARDED_BY(mutex);
};

LoopbackRegistry& registry() {
  static constinit PerProcess<LoopbackRegistry> registry;
  return registry.get();
}

}  // namespace

void Mailbox::on_arrival(std::function<void()> ring) {
  const MutexLock lock(mutex_);
  ring_ = std::move(ring);
}

void Mailbox::put(const LoopbackNote& note) {
  const MutexLock lock(mutex_);
  notes_.push_back(note);
  waiting_.store(static_cast<uint32_t>(notes_.size()), std::memory_order_release);
  if (std::exchange(asleep_, false) && ring_) ring_();
}

bool Mailbox::take(std::vector<LoopbackNote>& notes) {
  CHECK(notes.empty(), "notes are taken into an empty list");
  if (waiting_.load(std::memory_order_acquire) == 0) return false;
  const MutexLock lock(mutex_);
  notes.swap(notes_);
  waiting_.store(0, std::memory_order_relaxed);
  return !notes.empty();
}

bool Mailbox::prepare_sleep() {
  const MutexLock lock(mutex_);
  asleep_ = notes_.empty();
  return asleep_;
}

void Mailbox::finish_sleep() {
  const MutexLock lock(mutex_);
  asleep_ = false;
}

bool Mailbox::begin_reading() {
  // A reader counts itself before it looks at shut_. The owner sets shut_ before it looks for readers. So one of the
  // two sees the other.
  readers_.fetch_add(1, std::memory_order_seq_cst);
  if (!shut_.load(std::memory_order_seq_cst)) return true;
  end_reading();
  return false;
}

bool pin_mailbox(const std::string& job, int32_t rank, const std::shared_ptr<Mailbox>& mailbox) {
  const MutexLock lock(registry().mutex);
  std::weak_ptr<Mailbox>& place = registry().places[{job, rank}];
  if (!place.expired()) return false;
  place = mailbox;
  return true;
}

void unpin_mailbox(const std::string& job, int32_t rank, const Mailbox* mailbox) {
  const MutexLock lock(registry().mutex);
  const auto place = registry().places.find({job, rank});
  if (place != registry().places.end() && place->second.lock().get() == mailbox) registry().places.erase(place);
}

std::shared_ptr<Mailbox> find_mailbox(const std::string& job, int32_t rank) {
  const MutexLock lock(registry().mutex);
  const auto place = registry().places.find({job, rank});
  return place == registry().places.end() ? nullptr : place->second.lock();
}

}  // namespace trestle
