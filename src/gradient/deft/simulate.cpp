#include "gradient/deft/simulate.h"

#include <algorithm>
#include <map>

namespace trestle {
namespace {

constexpr uint32_t kMostIterationsOfACycle = 10000;

// The links' times. Nanoseconds are microseconds on link 0 times the slowdown in thousandths.
class Links {
 public:
  Links(const DeftQueues& queues, std::vector<DeftMessage>& messages)
      : queues_(queues), messages_(messages), free_ns_(queues.system().links.size(), 0) {}

  // Sends no message before `begin_ns`; with released_in_pass also none before its bucket's gradient in the pass that
  // begins then. Returns the time at which the last message is complete.
  uint64_t send(const DeftSends& sends, uint64_t begin_ns, bool released_in_pass) {
    uint64_t done_ns = 0;
    const uint64_t all_us = backward_us(queues_.system().buckets);
    for (size_t link = 0; link < sends.size(); ++link) {
      for (const uint32_t id : sends[link]) {
        const DeftItem& item = queues_.items()[id];
        const uint64_t after_us = all_us - room_us(queues_.system().buckets, item.bucket);
        const uint64_t ready_ns = begin_ns + (released_in_pass ? after_us * 1000 : 0);
        const uint64_t start_ns = std::max(free_ns_[link], ready_ns);
        free_ns_[link] = start_ns + item.comm_us * queues_.system().links[link].slowdown_permille;
        if (item.comm_us > 0) messages_.push_back({static_cast<uint32_t>(link), id, start_ns, free_ns_[link]});
        done_ns = std::max(done_ns, free_ns_[link]);
      }
    }
    return done_ns;
  }

 private:
  const DeftQueues& queues_;
  std::vector<DeftMessage>& messages_;
  std::vector<uint64_t> free_ns_;  // when each link has sent everything
};

class Run {
 public:
  explicit Run(DeftQueues queues) : queues_(std::move(queues)), links_(queues_, run_.messages) {}
  Run(const Run&) = delete;  // its links look at its queues and messages

  void iterate() {
    const DeftPass forward = queues_.forward();
    const DeftPass backward = queues_.backward();
    for (const DeftSends* sends : {&forward.sends, &backward.sends})
      current_done_ns_ = std::max(current_done_ns_, links_.send(*sends, last_gradient_ns_, false));
    now_ns_ += forward_us(queues_.system().buckets) * 1000;
    const uint64_t next_done_ns = links_.send(backward.next_sends, now_ns_, true);
    now_ns_ += backward_us(queues_.system().buckets) * 1000;
    last_gradient_ns_ = now_ns_;
    const uint64_t wait_ns =
        backward.update_batches != 0 && current_done_ns_ > now_ns_ ? current_done_ns_ - now_ns_ : 0;
    now_ns_ += wait_ns;
    if (backward.next_batches != 0) current_done_ns_ = next_done_ns;
    record(backward, wait_ns);
  }

  DeftRun result() {
    run_.pending = queues_.pending();
    return std::move(run_);
  }

 private:
  void record(const DeftPass& backward, uint64_t wait_ns) {
    const auto iteration = static_cast<uint32_t>(run_.ends_ns.size());
    run_.ends_ns.push_back(now_ns_);
    run_.waits_ns.push_back(wait_ns);
    run_.update_batches.push_back(backward.update_batches);
    if (backward.update_batches == 0) return;
    // Updates take the batches in order.
    const uint32_t oldest = next_batch_;
    next_batch_ += backward.update_batches;
    run_.updates.push_back({iteration, backward.update_batches, iteration - (next_batch_ - 1), iteration - oldest});
  }

  DeftQueues queues_;
  DeftRun run_;
  Links links_;
  uint64_t now_ns_ = 0;
  uint64_t current_done_ns_ = 0;   // when the messages of the current set that were sent so far are complete
  uint32_t next_batch_ = 0;        // the oldest one that no update has
  uint64_t last_gradient_ns_ = 0;  // when the last backward pass ended
};

}  // namespace

double DeftRun::iteration_us() const {
  return static_cast<double>(ends_ns.back()) / 1e3 / static_cast<double>(ends_ns.size());
}

double DeftRun::updates_per_iteration() const {
  return static_cast<double>(updates.size()) / static_cast<double>(ends_ns.size());
}

Result<DeftRun> simulate_deft(const DeftSystem& system, uint32_t iterations, uint32_t capacity_permille) {
  if (iterations == 0) return Error{Code::kInvalidArgument, "a run has at least one iteration"};
  Run run(TRY(DeftQueues::make(system, capacity_permille)));
  for (uint32_t i = 0; i < iterations; ++i) run.iterate();
  return run.result();
}

Result<std::vector<uint32_t>> deft_cycle(const DeftSystem& system, uint32_t capacity_permille) {
  DeftQueues queues = TRY(DeftQueues::make(system, capacity_permille));
  std::map<DeftState, size_t> seen;  // the number of updates before each state
  std::vector<uint32_t> batches;
  for (uint32_t i = 0; i < kMostIterationsOfACycle; ++i) {
    const auto [before, is_new] = seen.emplace(queues.state(), batches.size());
    if (!is_new) return std::vector<uint32_t>(batches.begin() + static_cast<ptrdiff_t>(before->second), batches.end());
    queues.forward();
    if (const uint32_t update = queues.backward().update_batches; update != 0) batches.push_back(update);
  }
  return Error{Code::kInvalidArgument, "the sequence of delayed updates does not repeat"};
}

}  // namespace trestle
