#include "device/gate.h"

#include <atomic>
#include <bit>
#include <new>

#include "base/check.h"

namespace trestle {

namespace {

Result<uint32_t*> make_word(Device& device) {
  std::byte* const memory = TRY(device.allocate_pinned(sizeof(uint32_t)));
  return new (memory) uint32_t(0);
}

void free_word(Device& device, uint32_t* word) {
  // A device that fails has failed its users already.
  [[maybe_unused]] const Status freed = device.free_pinned(reinterpret_cast<std::byte*>(word));
}

constexpr uint32_t kPollsPerQuestion = 1024;

// What a thread of the driver waits for.
struct Hold {
  uint32_t* word;
  uint32_t ticket;
};

void wait_in_driver(void* argument) {
  const std::unique_ptr<Hold> hold(static_cast<Hold*>(argument));
  const std::atomic_ref<uint32_t> word(*hold->word);
  for (uint32_t open = word.load(std::memory_order_acquire); !Mark::is_past(open, hold->ticket);
       open = word.load(std::memory_order_acquire)) {
    word.wait(open, std::memory_order_acquire);
  }
}

}  // namespace

Result<std::unique_ptr<Gate>> Gate::create(Device& device, GateWay way, uint32_t* word) {
  const bool owns = word == nullptr;
  if (owns) word = TRY(make_word(device));
  return std::unique_ptr<Gate>(new Gate(device, way, word, owns));
}

Gate::~Gate() {
  if (owns_word_) free_word(device_, word_);
}

Result<uint32_t> Gate::hold(StreamHandle* stream) {
  const uint32_t ticket = last_.load(std::memory_order_relaxed) + 1;
  if (way_ == GateWay::kWord) {
    TRY(device_.wait_for_word(stream, word_, ticket));
  } else {
    std::unique_ptr<Hold> hold(new (std::nothrow) Hold{word_, ticket});
    if (hold == nullptr) return Error{Code::kSystemError, "out of memory"};
    TRY(device_.call_host(stream, wait_in_driver, hold.get()));
    [[maybe_unused]] const Hold* const taken = hold.release();  // the driver's thread deletes it
  }
  last_.store(ticket, std::memory_order_release);
  return ticket;
}

void Gate::open(uint32_t ticket) {
  const std::atomic_ref<uint32_t> word(*word_);
  word.store(ticket, std::memory_order_release);
  if (way_ == GateWay::kHost) word.notify_all();
}

void Gate::open_all() {
  open(last_.load(std::memory_order_acquire));
}

constexpr uint32_t kClosed = 0;
constexpr uint32_t kOpen = 1;

Status GraphGate::capture(StreamHandle* captured, void (*arrived)(void*), void* argument) {
  TRY(device_.call_host(captured, arrived, argument));
  return device_.wait_for_word(captured, word_, kOpen);
}

bool GraphGate::close() {
  return std::atomic_ref<uint32_t>(*word_).exchange(kClosed, std::memory_order_acq_rel) != kClosed;
}

void GraphGate::open() {
  std::atomic_ref<uint32_t>(*word_).store(kOpen, std::memory_order_release);
}

Result<std::unique_ptr<Mark>> Mark::create(Device& device, GateWay way, uint32_t most, uint32_t* word, bool orders) {
  CHECK(most > 0, "a mark without room");
  // A power of two, so that tickets keep their events when they wrap around.
  std::unique_ptr<Mark> mark(new Mark(device, way, std::bit_ceil(most)));
  if (way == GateWay::kWord) mark->word_ = word;
  TRY(mark->prepare(orders));
  return mark;
}

Status Mark::prepare(bool orders) {
  if (way_ == GateWay::kWord && word_ == nullptr) {
    word_ = TRY(make_word(device_));
    owns_word_ = true;
  }
  if (way_ == GateWay::kWord && !orders) return {};
  events_.reserve(most_);
  while (events_.size() < most_) events_.push_back(TRY(device_.make_event(false, false)));
  recorded_.resize(most_);
  return {};
}

Mark::~Mark() {
  if (owns_word_) free_word(device_, word_);
  for (EventHandle* const event : events_) {
    [[maybe_unused]] const Status destroyed = device_.destroy_event(event);
  }
}

Result<uint32_t> Mark::put(StreamHandle* stream) {
  CHECK(has_room(), "a mark has no room");
  const uint32_t ticket = last_.load(std::memory_order_relaxed) + 1;
  stream_.store(stream, std::memory_order_relaxed);
  if (way_ == GateWay::kWord) {
    TRY(device_.write_word(stream, word_, ticket));
  } else {
    TRY(device_.record(events_[ticket % most_], stream));
  }
  last_.store(ticket, std::memory_order_release);
  return ticket;
}

Status Mark::record(uint32_t ticket) {
  recorded_[ticket % most_] = ticket;
  return device_.record(events_[ticket % most_], stream_.load(std::memory_order_relaxed));
}

Result<uint32_t> Mark::put_for_others(StreamHandle* stream) {
  const uint32_t ticket = TRY(put(stream));
  if (way_ == GateWay::kWord) TRY(record(ticket));
  return ticket;
}

// A ticket without an event gets that of the last ticket, which covers it.
Status Mark::let_wait(StreamHandle* other, uint32_t ticket) {
  CHECK(!events_.empty(), "a mark that orders no streams");
  if (way_ == GateWay::kWord && recorded_[ticket % most_] != ticket) {
    ticket = last_.load(std::memory_order_relaxed);
    if (recorded_[ticket % most_] != ticket) TRY(record(ticket));
  }
  return device_.wait_for_event(other, events_[ticket % most_]);
}

Result<uint32_t> Mark::reached() {
  const uint32_t last = last_.load(std::memory_order_acquire);
  uint32_t reached = reached_.load(std::memory_order_relaxed);
  if (way_ == GateWay::kWord) {
    const uint32_t written = std::atomic_ref<uint32_t>(*word_).load(std::memory_order_acquire);
    const bool waits = written == reached && reached != last;
    reached_.store(written, std::memory_order_relaxed);
    // A device that fails writes no word, but its answer tells.
    if (waits && ++vain_polls_ % kPollsPerQuestion == 0) TRY(device_.is_idle(stream_.load(std::memory_order_relaxed)));
    return written;
  }
  for (; reached != last && TRY(device_.is_done(events_[(reached + 1) % most_])); ++reached) {
  }
  reached_.store(reached, std::memory_order_relaxed);
  return reached;
}

Result<uint32_t> Mark::reached_by_word() {
  if (way_ != GateWay::kWord) return reached();
  const uint32_t written = std::atomic_ref<uint32_t>(*word_).load(std::memory_order_acquire);
  reached_.store(written, std::memory_order_relaxed);
  return written;
}

Result<bool> Mark::is_clear() {
  return is_past(TRY(reached_by_word()), last_.load(std::memory_order_acquire));
}

}  // namespace trestle
