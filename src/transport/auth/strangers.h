// Strangers: connections that have proved nothing yet. How many of them an endpoint keeps, and which one makes room for
// the next: the same rule wherever ranks listen.
//
// A silent connection costs nothing to make, so places run out however many there are. Therefore the oldest silent one
// goes first, then the oldest that has only claimed to be a rank, and never one that was promised a connection: its
// owner may count on that. The newest always gets a place, because it may be the peer that is awaited.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/auth/handshake.h"

namespace trestle {

// Beyond the ranks, which may all come at once.
inline constexpr size_t kMoreStrangers = 64;

enum class StrangerClaim : uint8_t { kNone, kRank, kPromised };

// At the side that accepted.
inline StrangerClaim claim_of(const Handshake& handshake) {
  if (handshake.peer_proved() && handshake.outgoing().empty()) return StrangerClaim::kPromised;
  return handshake.peer_rank() >= 0 ? StrangerClaim::kRank : StrangerClaim::kNone;
}

// Which stranger goes before another one is taken in: an iterator into `all`, which is ordered by age, the oldest
// first; its end when nobody has to go, or nobody may. `claim` tells the StrangerClaim of an element.
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
