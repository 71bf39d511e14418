// Strangers: connections that have proved nothing yet. Decides which of them a place that listens drops to make room
// for the next one. The rule is the same wherever ranks listen; how many there may be is the place's choice.
//
// A silent connection costs nothing to make, so any number of places can be used up. Therefore the oldest silent one is
// dropped first, then the oldest that has only claimed to be a rank. One that was promised a connection is never
// dropped: its owner may count on that. The newest always gets a place, because it may be the awaited peer.
//
// Plain functions over a container that the caller owns; its thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/auth/handshake.h"

namespace trestle {

// A transport keeps so many in addition to the ranks, which may all connect at once.
inline constexpr size_t kMoreStrangers = 64;
// Why a stranger is dropped that has done nothing wrong, for logs.
inline constexpr const char* kNoRoomForStrangers = "too many connections that prove nothing are open";
inline constexpr const char* kStrangerIsLate = "it did not prove itself in time";

// kAdmitted: no stranger any more. A container may hold such connections too; they are neither counted nor dropped.
enum class StrangerClaim : uint8_t { kNone, kRank, kPromised, kAdmitted };

// How far a connection has got, on the accepting side.
inline StrangerClaim claim_of(const Handshake& handshake) {
  if (handshake.peer_proved() && handshake.outgoing().empty()) return StrangerClaim::kPromised;
  return handshake.peer_rank() >= 0 ? StrangerClaim::kRank : StrangerClaim::kNone;
}

// The stranger to drop before another one is taken in where at most `most` are kept: an iterator into `all`, which is
// ordered by age, the oldest first. Its end when none has to be dropped, or none may be. `claim` returns the
// StrangerClaim of an element.
template <class All, class Claim>
auto find_stranger_to_drop(All& all, size_t most, Claim claim) {
  if (all.size() < most) return all.end();
  const auto admitted = [&](const auto& connection) { return claim(connection) == StrangerClaim::kAdmitted; };
  if (all.size() - static_cast<size_t>(std::count_if(all.begin(), all.end(), admitted)) < most) return all.end();
  const auto oldest = [&](StrangerClaim wanted) {
    return std::find_if(all.begin(), all.end(), [&](const auto& connection) { return claim(connection) == wanted; });
  };
  const auto silent = oldest(StrangerClaim::kNone);
  return silent != all.end() ? silent : oldest(StrangerClaim::kRank);
}

}  // namespace trestle
