// RendezvousServer: the ranks of one communicator send it their addresses. It answers when all ranks have come. While
// they connect to their neighbours, it alone is connected with every rank. So if one of them fails or dies, it tells
// the ranks that are not done yet.
//
// A rendezvous with a port of its own (a unique id) serves one communicator. One at a named place (MASTER_ADDR) serves
// all that its job makes there, one after another or at the same time: it alone decides which ranks belong together,
// and draws the communicator's number. So a rank may come again after a failure, also as another process. Two processes
// that come as one rank are two jobs at one place; both are refused, and if the first is in a communicator that lives,
// that one and its parts fail (RendezvousHold). Jobs with an identity of their own (Credentials::job) never meet.
//
// start_rendezvous() makes a thread that the process's registry owns. The thread ends when all ranks have reported and
// no hold is left, when its time is over, or when the process ends (a forked child does not have it). After a failure
// it stays for late ranks, as long as the ranks were ready to wait and at most a minute. Everything else is private to
// that thread. On a failure, all ranks that are connected or in the listening queue are told before a rank of this
// process hears of it, and before the process ends in order. Neither waits longer than a second for that.
//
// Strangers are connections that have not proved themselves and asked to join. They are dropped after the handshake
// time. As many of them are kept as ranks have not come yet, because those may all come at once, and kMoreHalfOpen
// more; transport/auth/strangers.h says which one is dropped for the next. A connection is read before another one can
// take its place. One that has proved to know a secret is never dropped for another. Each refused address is logged
// once. None of them delays a rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "rendezvous/server/hold.h"
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
  // At a named place: what to do where two jobs meet, for the sentence. "": the port was made for one communicator.
  std::string way_out;
};

using RendezvousHeld = std::shared_ptr<RendezvousHold>;

// At least one listener.
Result<RendezvousHeld> start_rendezvous(std::vector<Listener> listeners, const RendezvousOptions& options);

Result<RendezvousHeld> start_rendezvous(Listener listener, const RendezvousOptions& options);

// The rendezvous of this process for that job, if one runs, and the port at which it listens.
struct RunningRendezvous {
  RendezvousHeld hold;
  uint16_t port = 0;
};
std::optional<RunningRendezvous> hold_rendezvous(const Credentials& credentials);

// A rank of this process fails before it has asked the rendezvous of that job. If this process holds the rendezvous,
// the ranks that wait there, or come soon, get the reason. Nothing else would tell them that the rank does not come.
void give_up_rendezvous(const JobId& job, int32_t rank, const Error& error);

// Ends the failed servers of this process. A new server needs their port more than late ranks need the reason.
void end_failed_rendezvous();

// Number of servers of this process whose threads have not ended; for tests.
size_t running_rendezvous();

}  // namespace trestle
