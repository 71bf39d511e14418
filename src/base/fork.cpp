#include "base/fork.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace trestle {

namespace fork_internal {
std::atomic<uint32_t> generation{0};
}  // namespace fork_internal

namespace {

std::atomic<uint32_t> forks{0};     // forks under way, or about to begin
std::atomic<uint32_t> sections{0};  // number of NoForks alive
constexpr int64_t kLongestWaitNs = 1'000'000'000;

// Bounded: a signal handler that forks may have interrupted a section, which then cannot end.
void before_fork() {
  forks.fetch_add(1, std::memory_order_seq_cst);
  const int64_t give_up = monotonic_clock().now_ns() + kLongestWaitNs;
  while (sections.load(std::memory_order_seq_cst) != 0 && monotonic_clock().now_ns() < give_up) ::sched_yield();
}

void in_parent() {
  forks.fetch_sub(1, std::memory_order_release);
}

// Must be async-signal-safe: other threads of the parent may have held any lock.
void in_child() {
  close_all_descriptors();
  forks.store(0, std::memory_order_relaxed);
  sections.store(0, std::memory_order_relaxed);
  fork_internal::generation.fetch_add(1, std::memory_order_seq_cst);
}

}  // namespace

bool watch_forks() {
  return pthread_atfork(before_fork, in_parent, in_child) == 0;
}

// Counts first and then looks; before_fork() does so too. So one of the two sees the other.
NoFork::NoFork() {
  while (true) {
    sections.fetch_add(1, std::memory_order_seq_cst);
    if (forks.load(std::memory_order_seq_cst) == 0) return;
    sections.fetch_sub(1, std::memory_order_seq_cst);
    while (forks.load(std::memory_order_acquire) != 0) ::sched_yield();
  }
}

NoFork::~NoFork() {
  sections.fetch_sub(1, std::memory_order_release);
}

}  // namespace trestle
