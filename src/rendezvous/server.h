// RendezvousServer: where the ranks of one communicator leave their addresses. It answers when all are there, and while
// they connect to their neighbours it tells all who are not done yet when one of them fails or dies: until then it is
// the only one that everybody is connected with.
//
// start_rendezvous() makes a thread that the process's registry owns: it ends when all ranks have reported, when its
// time is over, or when the process ends (a forked child does not have it). One that has failed stays for ranks that
// come late, as long as the ranks were ready to wait and a minute at most. Everything else is private to that thread.
// A failure is told to all who are connected or in the listening queue before a rank of this process hears of it, and
// before the process ends in order; neither waits longer than a second for that.
//
// Strangers: a connection that has not proved itself and asked to join within the handshake time is dropped, there are
// at most kMaxHalfOpen of them (the oldest goes), and each address that was refused is logged once. None of them holds
// up a rank.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "rendezvous/unique_id.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {

inline constexpr size_t kMaxHalfOpen = 256;

struct RendezvousOptions {
  Credentials credentials;
  std::string place = "the rendezvous";  // for sentences, in the user's terms
  int64_t deadline_ns = kNever;          // of monotonic_clock()
  int64_t handshake_timeout_ns = 5'000'000'000;
};

Status start_rendezvous(Listener listener, const RendezvousOptions& options);

// A rank of this process fails before it came to the rendezvous of that name, if that one is of this process: those
// that wait there, or come soon, hear why. Nothing else tells it that the rank does not come.
void give_up_rendezvous(const JobId& job, int32_t rank, const Error& error);

// Ends those of this process that have failed: who makes a new one needs their port more than latecomers need the
// reason.
void end_failed_rendezvous();

// Servers of this process whose threads have not ended; for tests.
size_t running_rendezvous();

}  // namespace trestle
