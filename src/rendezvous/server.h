// RendezvousServer: the ranks of one communicator send it their addresses. It answers when all ranks have come. While
// they connect to their neighbours, it alone is connected with every rank. So if one of them fails or dies, it tells
// the ranks that are not done yet.
//
// start_rendezvous() makes a thread that the process's registry owns. The thread ends when all ranks have reported,
// when its time is over, or when the process ends (a forked child does not have it). A failed server stays for late
// ranks, as long as the ranks were ready to wait and at most a minute. Everything else is private to that thread. On a
// failure, all ranks that are connected or in the listening queue are told before a rank of this process hears of it,
// and before the process ends in order. Neither waits longer than a second for that.
//
// Strangers are connections that have not proved themselves and asked to join. They are dropped after the handshake
// time. As many of them are kept as ranks have not come yet, because those may all come at once, and kMoreHalfOpen
// more; transport/auth/strangers.h says which one is dropped for the next. A connection is read before another one can
// take its place. One that has proved to know a secret is never dropped for another. Each refused address is logged
// once. None of them delays a rank.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "rendezvous/unique_id.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"

namespace trestle {

inline constexpr size_t kMoreHalfOpen = 256;
// The assumed number of ranks until the first rank sends it, a few milliseconds after it connects. As many connections
// fit into the listening queue.
inline constexpr int32_t kUnknownRanks = 512;

struct RendezvousOptions {
  Credentials credentials;
  std::string place = "the rendezvous";  // for error messages, in the user's terms
  int64_t deadline_ns = kNever;          // of monotonic_clock()
  int64_t handshake_timeout_ns = 5'000'000'000;
  int32_t ranks = 0;  // how many will come; 0: not known
};

Status start_rendezvous(Listener listener, const RendezvousOptions& options);

// A rank of this process fails before it came to the rendezvous of that job. If this process holds the rendezvous, the
// ranks that wait there, or come soon, get the reason. Nothing else would tell them that the rank does not come.
void give_up_rendezvous(const JobId& job, int32_t rank, const Error& error);

// Ends the failed servers of this process. A new server needs their port more than late ranks need the reason.
void end_failed_rendezvous();

// Number of servers of this process whose threads have not ended; for tests.
size_t running_rendezvous();

}  // namespace trestle
