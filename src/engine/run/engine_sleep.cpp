// How threads sleep at an engine, and what wakes them.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/scope_exit.h"
#include "engine/run/engine.h"

namespace trestle {

namespace {

constexpr int kLookAgainMs = 1;  // for a sleeper that no bell may wake

}  // namespace

bool Engine::prepare_sleep() {
  announced_sleep_ = true;
  // What a round has left half done, such as a long copy, goes on without any bell.
  bool quiet = !failed() && !moved_ && !inbox_full_.load(std::memory_order_acquire);
  for (const auto& transport : transports_) quiet = transport->prepare_sleep() && quiet;
  for (Polled* polled : polled_) quiet = polled->prepare_sleep() && quiet;
  // No bell tells of new staging.
  quiet &= std::ranges::none_of(active_, [](const Operation* operation) { return operation->awaits_staging(); });
  return prepare_express_sleep() && quiet;
}

bool Engine::prepare_express_sleep() {
  const auto is_on_board = [](const Operation* operation) { return operation->express() && !operation->on_device(); };
  int awaiting = 0;
  int32_t awaited = Doorbells::kAnything;
  for (const Operation* operation : active_) {
    if (is_on_board(operation))
      awaited = ++awaiting == 1 ? express_->awaited(*operation->express()) : Doorbells::kAnything;
  }
  if (awaiting == 0) return true;
  express_->prepare_sleep(awaited);
  return std::none_of(active_.begin(), active_.end(), [&](const Operation* operation) {
    return is_on_board(operation) && express_->can_go_on(*operation->express());
  });
}

void Engine::finish_sleep() {
  announced_sleep_ = false;
  for (const auto& transport : transports_) transport->finish_sleep();
  if (express_ != nullptr) express_->finish_sleep();
  for (Polled* polled : polled_) polled->finish_sleep();
}

// Only the first sleeper hears the bell; the others look again soon.
Engine::Sleep Engine::begin_sleep() {
  if (!try_lock()) return {Sleep::State::kDriven, false, kLookAgainMs};
  const bool alive = !closed_ && !transports_closed_;
  const bool first = sleepers_.fetch_add(1, std::memory_order_seq_cst) == 0;
  const Sleep sleep{Sleep::State::kBegun, first, first && !suspicion_ ? INT_MAX : kLookAgainMs};
  const bool quiet = alive && prepare_sleep();
  const bool only_suspects = alive && suspicion_ && !failed();  // operations do not run while there is a suspicion
  unlock();
  if (quiet || only_suspects) return sleep;
  end_sleep(sleep);
  return {Sleep::State::kBusy, false, 0};
}

void Engine::end_sleep(const Sleep& sleep) {
  uint64_t count;
  while (sleep.first && ::read(wake_.get(), &count, sizeof count) > 0) {
  }
  if (sleepers_.fetch_sub(1, std::memory_order_seq_cst) == 1 && try_lock()) {
    // Another thread may have begun to sleep: then the announcement belongs to it.
    if (sleepers() == 0 && !closed_ && !transports_closed_ && announced_sleep_) finish_sleep();
    rounds_ = 0;  // the next round reads the clock and checks the deadlines
    unlock();
  }
}

void Engine::sleep(int timeout_ms, const std::function<bool()>& done) {
  const Sleep sleep = begin_sleep();
  if (sleep.state == Sleep::State::kBusy) return;
  if (sleep.state == Sleep::State::kDriven) {
    // The driving thread completes our operation, or releases the lock soon.
    ::sched_yield();
    return;
  }
  bool rung = false;
  {
    const ScopeExit awake([&] { end_sleep(sleep); });  // also if done() throws
    std::array<pollfd, 2> fds = sleep_fds();
    if (!done()) rung = ::poll(fds.data(), fds.size(), std::min(timeout_ms, sleep.most_ms)) > 0;
  }
  // The first sleeper and the last one that wakes silence the doorbells. These threads may need this processor. Only a
  // thread that no longer counts as a sleeper may yield: else there might be no last one.
  if (rung && !sleep.first) ::sched_yield();
}

void Engine::wake() {
  const uint64_t one = 1;
  // A full counter means that the bell rings already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace trestle
