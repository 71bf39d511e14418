// Patience: how a thread that waits for an engine passes the time. It polls, yields its processor to other threads, or
// sleeps. It learns from how long the last waits took.
//
// Polling is the fastest way to notice an event within microseconds. It is wasted on events that take longer than
// falling asleep and being woken (some 50 us). So the number of polls before a sleep falls while waits end in sleep,
// and grows while they end just in time. Yielding helps where the awaited rank shares the processor. It costs a time
// slice of milliseconds where a stranger does. After a long yield, sleeping is better, because the scheduler prefers a
// thread that is woken to one that has yielded. The next waits then do without yields, and more of them each time that
// happens.
//
// A Patience belongs to an engine, any thread; a Pause to one thread's wait.
#pragma once

#include <atomic>
#include <cstdint>

namespace trestle {

struct PatienceLimits {
  int looks = 2000;
  int yields = 200;
  // There are also yields between looks: the system may have put a peer on this processor.
  int looks_per_yield = 32;
  bool learns = true;
};

class Patience {
 public:
  explicit Patience(const PatienceLimits& limits) : limits_(limits), looks_(limits.looks) {}

  const PatienceLimits& limits() const { return limits_; }
  // Number of looks before a sleep, as learned so far.
  int looks() const { return looks_.load(std::memory_order_relaxed); }
  // A wait has ended after `looks`: in the last of them, or after a sleep.
  void ended(int looks, bool slept);
  // Whether this wait may yield. Called once per wait that is long enough to ask.
  bool may_yield();
  void yield_was_long();

 private:
  const PatienceLimits limits_;
  std::atomic<int> looks_;
  std::atomic<int> waits_without_yields_{0};
  std::atomic<int> next_penalty_{0};
};

class Pause {
 public:
  enum class Pass : uint8_t { kLook, kYield, kSleep };
  static constexpr int64_t kLongYieldNs = 100'000;

  explicit Pause(Patience& patience) : patience_(&patience) {}
  // Uses another engine's patience from now on; the same one changes nothing.
  void use(Patience& patience);
  // The last look found nothing: returns what to do now.
  Pass next();
  // How long a yield took.
  void yielded(int64_t ns);
  // Does what next() says. False: it is time to sleep, which is up to the caller.
  bool pass();
  // The last look found something.
  void moved();
  // Looks that found nothing since something moved.
  int looks() const { return looks_; }
  // Whether the next pass would be a sleep.
  bool should_sleep() const { return should_sleep_ || looks_ >= limit_ + yields_; }

 private:
  Patience* patience_;
  int looks_ = 0;
  int limit_ = 0;   // of looks; set at the first look, as is yields_
  int yields_ = 0;  // after the looks; 0: no yields between the looks either
  bool should_sleep_ = false;
  bool slept_ = false;
};

}  // namespace trestle
