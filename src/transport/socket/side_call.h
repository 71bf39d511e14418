// SideCall: a call of another library that has no deadline and cannot be interrupted, on a thread of its own. So
// whoever needs its result can give up.
//
// Owned by one thread. If the call has not ended when the object is destroyed, the thread stays inside it, alone, at
// most until the process ends; the call must own all that it uses.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "base/thread.h"
#include "transport/socket/socket.h"
#include "transport/socket/system_error.h"

namespace trestle {

template <class T>
class SideCall {
 public:
  // name: of the kind of thread, a literal.
  static Result<SideCall> start(const char* name, std::function<Result<T>()> call) {
    SideCall made;
    made.state_ = std::make_shared<State>();
    made.state_->bell = UniqueFd::open([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    if (!made.state_->bell) return socket_error("eventfd");
    made.thread_ = TRY(Thread::start(name, [state = made.state_, call = std::move(call)] {
      state->result = call();
      state->ended.store(true, std::memory_order_release);
      (void)eventfd_write(state->bell.get(), 1);
    }));
    return made;
  }
  SideCall(SideCall&&) noexcept = default;
  SideCall& operator=(SideCall&&) = delete;
  ~SideCall() {
    if (state_ != nullptr && !ended()) thread_.detach();
  }

  bool ended() const { return state_->ended.load(std::memory_order_acquire); }
  // Returns when the call has ended; kTimeout, kAborted.
  Status wait_before(const WaitLimit& limit) const { return trestle::wait_before(state_->bell.get(), POLLIN, limit); }
  // Once, when it has ended.
  Result<T> take() {
    thread_.join();
    return std::move(state_->result);
  }

 private:
  struct State {
    UniqueFd bell;
    std::atomic<bool> ended{false};
    Result<T> result{Error{Code::kInternalError, "the call did not run"}};
  };
  SideCall() = default;

  std::shared_ptr<State> state_;
  Thread thread_;
};

}  // namespace trestle
