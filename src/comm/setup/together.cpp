#include "comm/setup/together.h"

#include <atomic>
#include <vector>

#include "base/thread.h"

namespace trestle {

namespace {

// Threads that begin together once all of them exist.
class GatedThreads {
 public:
  explicit GatedThreads(size_t most) { threads_.reserve(most); }
  ~GatedThreads() { open(kGiveUp); }  // the threads are joined after that

  Status add(const std::function<void()>& task) {
    threads_.push_back(TRY(Thread::start("joining", [this, task] {
      gate_.wait(kClosed);
      if (gate_.load() == kBegin) task();
    })));
    return {};
  }
  void begin() { open(kBegin); }
  void join() {
    for (Thread& thread : threads_) thread.join();
  }

 private:
  enum Gate : int { kClosed, kBegin, kGiveUp };
  void open(Gate how) {
    int closed = kClosed;
    if (gate_.compare_exchange_strong(closed, how)) gate_.notify_all();
  }

  std::atomic<int> gate_{kClosed};
  std::vector<Thread> threads_;
};

}  // namespace

Status run_together(size_t count, const std::function<Status(size_t)>& body, const std::function<void()>& ready) {
  std::vector<Status> results(count);
  GatedThreads threads(count);
  for (size_t i = 1; i < count; ++i) TRY(threads.add([&results, &body, i] { results[i] = body(i); }));
  ready();
  threads.begin();
  if (count != 0) results[0] = body(0);
  threads.join();
  for (Status& result : results) TRY(std::move(result));
  return {};
}

}  // namespace trestle
