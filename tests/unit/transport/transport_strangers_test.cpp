// Who has to go when a place that listens is full.
#include <gtest/gtest.h>

#include <iterator>
#include <list>
#include <map>
#include <vector>

#include "transport/auth/strangers.h"

namespace trestle {
namespace {

constexpr StrangerClaim kNone = StrangerClaim::kNone;
constexpr StrangerClaim kRank = StrangerClaim::kRank;
constexpr StrangerClaim kPromised = StrangerClaim::kPromised;
constexpr StrangerClaim kAdmitted = StrangerClaim::kAdmitted;

// The place of the one that has to go; -1: nobody.
int dropped_of(const std::vector<StrangerClaim>& all, size_t most) {
  const auto dropped = find_stranger_to_drop(all, most, [](StrangerClaim claim) { return claim; });
  return dropped == all.end() ? -1 : static_cast<int>(dropped - all.begin());
}

TEST(Strangers, NobodyGoesWhileThereIsRoom) {
  EXPECT_EQ(dropped_of({}, 1), -1);
  EXPECT_EQ(dropped_of({kNone, kNone}, 3), -1);
}

TEST(Strangers, TheOldestSilentOneGoesFirst) {
  EXPECT_EQ(dropped_of({kNone, kNone, kNone}, 3), 0);
  EXPECT_EQ(dropped_of({kRank, kPromised, kNone, kNone}, 4), 2);
}

TEST(Strangers, ThenTheOldestThatOnlyClaimsToBeARank) {
  EXPECT_EQ(dropped_of({kPromised, kRank, kRank}, 3), 1);
  EXPECT_EQ(dropped_of({kPromised, kRank, kRank}, 1), 1) << "more than there may be";
}

TEST(Strangers, WhoWasPromisedAConnectionStays) {
  EXPECT_EQ(dropped_of({kPromised, kPromised}, 2), -1);
}

TEST(Strangers, WhoIsAdmittedIsNeitherCountedNorDropped) {
  EXPECT_EQ(dropped_of({kAdmitted, kNone, kAdmitted}, 2), -1);
  EXPECT_EQ(dropped_of({kAdmitted, kRank, kAdmitted, kNone}, 2), 3);
  EXPECT_EQ(dropped_of({kAdmitted, kAdmitted}, 1), -1);
}

TEST(Strangers, HoldInAnyContainer) {
  std::list<StrangerClaim> list = {kRank, kNone};
  EXPECT_EQ(find_stranger_to_drop(list, 2, [](StrangerClaim claim) { return claim; }), std::next(list.begin()));
  std::map<int, StrangerClaim> map = {{4, kRank}, {7, kNone}};
  EXPECT_EQ(find_stranger_to_drop(map, 2, [](const auto& entry) { return entry.second; })->first, 7);
}

TEST(Strangers, AHandshakeClaimsARankWithItsHello) {
  const Credentials of_one{std::vector<std::byte>(32, std::byte{9}), job_id("job"), 1};
  Credentials of_zero = of_one;
  of_zero.rank = 0;
  Handshake initiator(Role::kInitiator, Purpose::kTcp, of_one, 0);
  Handshake acceptor(Role::kAcceptor, Purpose::kTcp, of_zero);
  const auto pass = [](Handshake& from, Handshake& to) {
    EXPECT_TRUE(to.received(from.outgoing()).ok());
    from.sent(from.outgoing().size());
  };
  EXPECT_EQ(claim_of(acceptor), kNone);
  pass(initiator, acceptor);
  EXPECT_EQ(claim_of(acceptor), kRank);
  pass(acceptor, initiator);
  pass(initiator, acceptor);
  EXPECT_EQ(claim_of(acceptor), kRank) << "its own proof is not sent";
  pass(acceptor, initiator);
  EXPECT_EQ(claim_of(acceptor), kPromised);
}

}  // namespace
}  // namespace trestle
