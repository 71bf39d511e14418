// What users write of simulated rails, and the sentences about what is wrong with it.
#include "sim/rail_request.h"

#include <gtest/gtest.h>

namespace trestle {
namespace rail_request_test {
namespace {

std::string refusal(const std::string& text) {
  const auto request = parse_sim_rail(text);
  EXPECT_FALSE(request.ok()) << text;
  return request.ok() ? "" : request.error().message;
}

void expect_refused(const std::string& text, const std::string& part) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(part), std::string::npos) << text << " says: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

std::vector<SimLink> two_dimensions() {
  std::vector<SimLink> links(3);
  links[0].rails = {{"eth1", 1000}, {"eth2", 500}};
  links[2].rails = {{"eth2", 100}};
  return links;
}

TEST(RailRequest, HasEverythingThatCanBeSaid) {
  const auto request =
      parse_sim_rail("eth2:latency=50us,jitter=5us,burst=16K,down@0.5,up@1200ms,drop@2,pass@3s,rate@0.3=0.1");
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request.value().interface, "eth2");
  std::vector<SimLink> links = two_dimensions();
  SimFaults faults;
  ASSERT_TRUE(use_sim_rails({request.value()}, links, faults).ok());
  EXPECT_EQ(links[0].rails[0].latency_ns, 0u);
  for (const SimRail* const rail : {&links[0].rails[1], &links[2].rails[0]}) {
    EXPECT_EQ(rail->latency_ns, 50'000u);
    EXPECT_EQ(rail->most_jitter_ns, 5'000u);
    EXPECT_EQ(rail->burst_bytes, 16u * 1024);
  }
  ASSERT_EQ(faults.rails.size(), 10u) << "five changes of each of two rails";
  const SimRailChange changes[] = {SimRailChange::kDown, SimRailChange::kUp, SimRailChange::kDrop, SimRailChange::kPass,
                                   SimRailChange::kRate};
  const uint64_t times_ms[] = {500, 1200, 2000, 3000, 300};
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(faults.rails[i].dimension, i < 5 ? 0 : 2);
    EXPECT_EQ(faults.rails[i].rail, i < 5 ? 1 : 0);
    EXPECT_EQ(faults.rails[i].change, changes[i % 5]);
    EXPECT_EQ(faults.rails[i].at_ns, times_ms[i % 5] * 1'000'000);
  }
  EXPECT_EQ(faults.rails[4].rate_ppm, 100'000u);
}

TEST(RailRequest, ThatIsWrongIsRefusedInOneSentence) {
  expect_refused("", "must have the name of a rail and what happens to it");
  expect_refused("eth1", "must have the name of a rail");
  expect_refused("eth1:", "must have the name of a rail");
  expect_refused(":down@1", "must have the name of a rail");
  expect_refused("eth1:down@1,", "'' says nothing of a rail");
  expect_refused("eth1:cut@1", "'cut@1' is nothing that can happen to a rail; there are down@TIME");
  expect_refused("eth1:down", "'down' says nothing of a rail");
  expect_refused("eth1:down@", "is not a duration");
  expect_refused("eth1:down@-1", "is not a duration");
  expect_refused("eth1:down@100000h", "is more than");
  expect_refused("eth1:latency=2s", "is more than 1s");
  expect_refused("eth1:jitter=x", "is not a duration");
  expect_refused("eth1:burst=", "'burst='");
  expect_refused("eth1:burst=x", "'burst=x'");
  expect_refused("eth1:burst=-1", "'burst=-1'");
  expect_refused("eth1:burst=2G", "a burst has 0 to 1G bytes, not 2G");
  expect_refused("eth1:rate@1", "has no rate");
  for (const char* rate : {"0", "-1", "nan", "inf", "x", "", "0.1x", "1e-7", "1001"})
    expect_refused(std::string("eth1:rate@1=") + rate, "is no part of a rail's rate");
}

TEST(RailRequest, OfAnUnknownRailNamesThoseThatExist) {
  const SimRailRequest request = parse_sim_rail("eth9:down@1").value();
  std::vector<SimLink> links = two_dimensions();
  SimFaults faults;
  const Status unknown = use_sim_rails({request}, links, faults);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "'eth9' is not a rail of this topology; did you mean eth1? There are eth1, eth2");
  std::vector<SimLink> none(2);
  const Status without = use_sim_rails({request}, none, faults);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().message, "'eth9' is no rail of this topology: its dimensions name no rails");
}

}  // namespace
}  // namespace rail_request_test
}  // namespace trestle
