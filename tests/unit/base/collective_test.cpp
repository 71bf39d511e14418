// The rows of the collectives: complete, consistent, and unchanged.
#include "base/collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/types.h"

namespace trestle {
namespace {

using enum Collective;

bool has_list(const CallBuffer& buffer) {
  return buffer.extent == BufferExtent::kList || buffer.extent == BufferExtent::kOwnBlock;
}

std::vector<Collective> those_with(bool (*property)(Collective)) {
  std::vector<Collective> found;
  for (const CollectiveRow& row : kCollectiveRows) {
    if (property(row.collective)) found.push_back(row.collective);
  }
  return found;
}

TEST(Collectives, HaveCompleteRows) {
  std::set<std::string> names, functions;
  for (const CollectiveRow& row : kCollectiveRows) {
    ASSERT_NE(row.name, nullptr);
    SCOPED_TRACE(row.name);
    EXPECT_STREQ(row.name, to_string(row.collective));
    EXPECT_TRUE(names.insert(row.name).second);
    ASSERT_NE(row.function, nullptr);
    EXPECT_TRUE(functions.insert(row.function).second);
    if (row.other_function != nullptr) {
      EXPECT_TRUE(functions.insert(row.other_function).second);
    }
    ASSERT_NE(row.in_place, nullptr);
    const bool scheduled = row.whole.count != 0 || row.reduce_scatter_phases || row.all_gather_phases;
    EXPECT_NE(scheduled, row.point_to_point) << "a collective has a schedule, a message has none";
    EXPECT_TRUE(!row.point_to_point || row.other_function != nullptr) << "a message has two ends";
  }
}

TEST(Collectives, HaveBuffersThatFitTheirBlocks) {
  for (const CollectiveRow& row : kCollectiveRows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(has_list(row.sent) || has_list(row.received), row.blocks != BlockKnowledge::kEven);
    EXPECT_EQ(row.sent.extent == BufferExtent::kOwnBlock,
              row.received.extent == BufferExtent::kList && row.blocks == BlockKnowledge::kKnown);
    EXPECT_EQ(row.received.extent == BufferExtent::kOwnBlock,
              row.sent.extent == BufferExtent::kList && row.blocks == BlockKnowledge::kKnown);
    EXPECT_EQ(row.sent.extent == BufferExtent::kNone, row.received.extent == BufferExtent::kNone);
    EXPECT_FALSE(row.sent.at_root_only && row.received.at_root_only) << "what would the other ranks do?";
    EXPECT_TRUE(!row.over_board || (row.blocks == BlockKnowledge::kEven && !row.point_to_point));
  }
}

TEST(Collectives, ArePutTogetherOfKindsThatDoTheSame) {
  for (const CollectiveRow& row : kCollectiveRows) {
    SCOPED_TRACE(row.name);
    bool kinds_reduce = row.reduce_scatter_phases;
    for (const PhaseKind kind : row.whole) {
      EXPECT_EQ(has_root(kind), has_root(row.collective));
      EXPECT_EQ(has_pairwise_blocks(kind), has_pairwise_blocks(row.collective));
      kinds_reduce = kinds_reduce || reduces(kind);
    }
    // A barrier may count as a sum of nothing.
    if (moves_data(row.collective)) {
      EXPECT_EQ(kinds_reduce, row.reduces);
    }
  }
}

TEST(Collectives, SayWhereTheBuffersOfACallInPlaceLie) {
  for (const CollectiveRow& row : kCollectiveRows) {
    const std::string text = row.in_place;
    switch (in_place_rule(row.collective)) {
      case InPlaceRule::kSameBegin:
        EXPECT_EQ(text, "send == recv") << row.name;
        break;
      case InPlaceRule::kSentInReceived:
        EXPECT_TRUE(text.starts_with("send == recv + ")) << row.name;
        break;
      case InPlaceRule::kReceivedInSent:
        EXPECT_TRUE(text.starts_with("recv == send + ")) << row.name;
        break;
    }
  }
  EXPECT_EQ(those_with([](Collective c) { return in_place_rule(c) == InPlaceRule::kSentInReceived; }),
            (std::vector{kAllGather, kGather, kAllGatherV, kGatherV}));
  EXPECT_EQ(those_with([](Collective c) { return in_place_rule(c) == InPlaceRule::kReceivedInSent; }),
            (std::vector{kReduceScatter, kScatter, kReduceScatterV, kScatterV}));
}

TEST(Collectives, HaveTheirProperties) {
  EXPECT_EQ(those_with(reduces), (std::vector{kAllReduce, kReduceScatter, kReduce, kReduceScatterV}));
  EXPECT_EQ(those_with(has_root), (std::vector{kBroadcast, kReduce, kGather, kScatter, kGatherV, kScatterV}));
  EXPECT_EQ(those_with(has_known_blocks), (std::vector{kAllGatherV, kReduceScatterV}));
  EXPECT_EQ(those_with(has_pairwise_blocks), (std::vector{kAllToAllV, kGatherV, kScatterV}));
  EXPECT_EQ(those_with(has_uneven_blocks),
            (std::vector{kAllGatherV, kReduceScatterV, kAllToAllV, kGatherV, kScatterV}));
  EXPECT_EQ(those_with(has_block_per_rank), (std::vector{kReduceScatter, kAllGather, kAllToAll, kGather, kScatter}));
  EXPECT_EQ(those_with([](Collective c) { return !moves_data(c); }), (std::vector{kBarrier}));
  EXPECT_EQ(those_with(is_point_to_point), (std::vector{kSendRecv}));
}

TEST(Collectives, AreNumbersWithARow) {
  EXPECT_TRUE(is_valid(static_cast<Collective>(kCollectives - 1)));
  EXPECT_FALSE(is_valid(static_cast<Collective>(kCollectives)));
  EXPECT_FALSE(is_valid(static_cast<Collective>(255)));
  EXPECT_STREQ(to_string(static_cast<Collective>(255)), "invalid");
}

}  // namespace
}  // namespace trestle
