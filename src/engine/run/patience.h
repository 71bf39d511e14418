// Patience: how a thread that waits for an engine passes the time: it looks again, gives its processor to other
// threads, or sleeps. It learns from how long the last waits took.
//
// Looking is the fastest way to notice what comes within microseconds, and wasted on what takes longer than falling
// asleep and being woken (some 50 us). So the number of looks before a sleep falls while waits end in sleep, and grows
// while they end just in time. Giving up the processor helps where the awaited rank shares it, and costs a time slice
// of milliseconds where a stranger does: after a yield that took long, sleeping is better, because the scheduler
// prefers a thread that is woken to one that has yielded; and the next waits do without yields, the more of them the
// more often that has happened.
//
// A Patience belongs to an engine, any thread; a Pause to one thread's wait.
#pragma once

#include <atomic>
#include <cstdint>

namespace trestle {

struct PatienceLimits {
  int looks = 2000;
  int yields = 200;
  int looks_per_yield = 32;  // between looks too: other work of the machine may have put a peer on this processor
  bool learns = true;
};

class Patience {
 public:
  explicit Patience(const PatienceLimits& limits) : limits_(limits), looks_(limits.looks) {}

  const PatienceLimits& limits() const { return limits_; }
  // Before a sleep, as it was learned.
  int looks() const { return looks_.load(std::memory_order_relaxed); }
  // A wait has ended after `looks`, in the last of them or after a sleep.
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
  // Another engine's from now on; the same one changes nothing.
  void use(Patience& patience);
  // The last look found nothing: what to do now.
  Pass next();
  // How long a yield took.
  void yielded(int64_t ns);
  // Does it. False: it is time to sleep, which is the caller's.
  bool pass();
  // The last look found something.
  void moved();
  // Looks that found nothing since something moved.
  int looks() const { return looks_; }
  // The next pass would be a sleep.
  bool tired() const { return tired_ || looks_ >= limit_ + yields_; }

 private:
  Patience* patience_;
  int looks_ = 0;
  int limit_ = 0;   // of looks; both are set by the first
  int yields_ = 0;  // after them; 0: none in between either
  bool tired_ = false;
  bool slept_ = false;
};

}  // namespace trestle
