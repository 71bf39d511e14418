// The table of transports: names, and the choice if no transport is given.
#include "base/transport_kinds.h"

#include <gtest/gtest.h>

#include <set>

namespace trestle {
namespace {

TEST(TransportKinds, HaveNamesThatAreRead) {
  std::string names = "auto";
  for (size_t i = 0; i < transport_kinds().size(); ++i) {
    const auto kind = static_cast<TransportKind>(i + 1);
    EXPECT_EQ(&facts_of(kind), &transport_kinds()[i]);
    EXPECT_EQ(parse_transport(to_string(kind)).value(), kind);
    names += std::string(" ") + to_string(kind);
  }
  EXPECT_TRUE(names.starts_with("auto loopback shm tcp")) << names;
  EXPECT_EQ(transport_names(" "), names);
  EXPECT_EQ(parse_transport("auto").value(), TransportKind::kAuto);
  EXPECT_STREQ(to_string(static_cast<TransportKind>(transport_kinds().size() + 1)), "invalid");
  const auto bad = parse_transport("pigeon");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Code::kInvalidArgument);
  EXPECT_EQ(bad.error().message, "'pigeon' is not a transport; there are auto, loopback, shm, tcp");
}

TEST(TransportKinds, HaveDifferentNames) {
  std::set<std::string> names = {"auto"};
  for (const TransportFacts& row : transport_kinds()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

TEST(TransportKinds, TheNearestIsChosen) {
  EXPECT_EQ(automatic_transport(Reach::kProcess), TransportKind::kLoopback);
  EXPECT_EQ(automatic_transport(Reach::kHost), TransportKind::kShm);
  EXPECT_EQ(automatic_transport(Reach::kAnywhere), TransportKind::kTcp);
}

TEST(TransportKinds, AutoCountsAsTheSlowestThatIsChosen) {
  EXPECT_EQ(&facts_of(TransportKind::kAuto), &facts_of(TransportKind::kTcp));
}

// The numbers of predictions. They are calibrated and described beside the rows.
TEST(TransportKinds, HaveCostsThatPredictionsCanBeMadeWith) {
  for (const TransportFacts& row : transport_kinds()) {
    EXPECT_GT(row.latency_ns, 0u) << row.name;
    EXPECT_GT(row.bandwidth_mbps, 0u) << row.name;
    EXPECT_GT(row.reduce_mbps, 0u) << row.name;
    EXPECT_GT(row.processor_ps_per_byte, 0u) << row.name;
    EXPECT_GE(row.segment_bytes, 64u) << row.name;
    EXPECT_EQ(row.segment_bytes % 64, 0u) << row.name << ": segments are whole cache lines";
  }
}

}  // namespace
}  // namespace trestle
