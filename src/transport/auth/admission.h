// Admission: takes the connections that wait at a listener, for every place where ranks listen.
//
// It takes a few in one turn, so that the connections that are open already are served in between. The place reads each
// one before the next is taken. A rank's hello distinguishes it from silent strangers (transport/auth/strangers.h), so
// a crowd that waits behind it cannot take its place.
//
// A connection that cannot be taken stays in the queue, mostly because no descriptors are left. The listener stays
// readable then, and a thread that polled it would spin. So nothing is taken for a moment.
//
// A value of the place; its thread.
#pragma once

#include <cstdint>
#include <utility>

#include "base/result.h"
#include "transport/socket/socket.h"

namespace trestle {

class Admission {
 public:
  static constexpr int kMostAtOnce = 64;
  static constexpr int64_t kPauseNs = 50'000'000;

  // Calls admit(UniqueFd) for each. It keeps the connection and reads at once what has come with it. An error says why
  // no more could be taken.
  template <class Admit>
  Status take(int listener_fd, int64_t now_ns, Admit admit) {
    more_wait_ = false;
    for (int taken = 0; taken < kMostAtOnce; ++taken) {
      Result<UniqueFd> accepted = accept_connection(listener_fd);
      if (!accepted.ok()) {
        resumes_ns_ = now_ns + kPauseNs;
        return std::move(accepted).error();
      }
      if (!accepted.value()) return {};
      admit(std::move(accepted).value());
    }
    more_wait_ = true;
    return {};
  }
  // The queue may hold more than the last turn took.
  bool more_wait() const { return more_wait_; }
  // A failure was a moment ago. The place does not watch its listener, and looks again at resumes_ns().
  bool pauses(int64_t now_ns) const { return now_ns < resumes_ns_; }
  int64_t resumes_ns() const { return resumes_ns_; }

 private:
  int64_t resumes_ns_ = 0;
  bool more_wait_ = false;
};

}  // namespace trestle
