// Strangers: connections that have proved nothing yet. Decides how many of them an endpoint keeps, and which one is
// dropped for the next. The rule is the same wherever ranks listen.
//
// A silent connection costs nothing to make, so any number of places can be used up. Therefore the oldest silent one is
// dropped first, then the oldest that has only claimed to be a rank. One that was promised a connection is never
// dropped: its owner may count on that. The newest always gets a place, because it may be the awaited peer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/auth/handshake.h"

namespace trestle {

// In addition to the ranks, which may all connect at once.
inline constexpr size_t kMoreStrangers = 64;

enum class StrangerClaim : uint8_t { kNone, kRank, kPromised };

// How far a connection has got, on the accepting side.
inline StrangerClaim claim_of(const Handshake& handshake) {
  if (handshake.peer_proved() && handshake.outgoing().empty()) return StrangerClaim::kPromised;
  return handshake.peer_rank() >= 0 ? StrangerClaim::kRank : StrangerClaim::kNone;
}

// The stranger to drop before another one is taken in: an iterator into `all`, which is ordered by age, the oldest
// first. Its end when none has to be dropped, or none may be. `claim` returns the StrangerClaim of an element.
template <class All, class Claim>
auto find_who_makes_room(All& all, size_t ranks, Claim claim) {
  if (all.size() < ranks + kMoreStrangers) return all.end();
  const auto oldest = [&](StrangerClaim wanted) {
    return std::find_if(all.begin(), all.end(), [&](const auto& stranger) { return claim(stranger) == wanted; });
  };
  const auto silent = oldest(StrangerClaim::kNone);
  return silent != all.end() ? silent : oldest(StrangerClaim::kRank);
}

}  // namespace trestle
