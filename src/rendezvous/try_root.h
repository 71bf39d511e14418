// One attempt to reach the root of a rendezvous, or whoever listens in its place.
//
// Blocks until the limit, at most 2 s for the connection. Any thread.
#pragma once

#include "rendezvous/bootstrap.h"
#include "rendezvous/meeting.h"

namespace trestle {

// How long the first rounds wait for an answer. Where several ports are possible, one may belong to a program that
// accepts the connection and stays silent.
inline constexpr int64_t kFirstLookNs = 1'000'000'000;

struct RootAttempt {
  UniqueFd socket;
  Error error{Code::kSuccess, {}};
  bool refused = false;  // the peer answered and is not our root
  bool other_job = false;
  bool refused_secret = false;
  bool other_version = false;  // the peer speaks another version of the protocol
  bool silent = false;         // the peer accepted the connection and did not answer
  bool lost = false;           // the peer accepted the connection and closed it: it may have had no room at that moment
};

// As rank `config.rank`. patience_ns: for the handshake, at most the configured time.
RootAttempt try_root(const SocketAddress& address, const BootstrapConfig& config, const Root& root, int64_t patience_ns,
                     const WaitLimit& limit);

}  // namespace trestle
