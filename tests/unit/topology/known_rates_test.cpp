// Bandwidths from the rails that ranks know: the least of all ranks, and none if a rank does not know.
#include <gtest/gtest.h>

#include "topology/topology.h"

namespace trestle {
namespace {

// One letter per rank: its host.
std::vector<RankPlace> hosts(const std::string& text) {
  std::vector<RankPlace> places;
  for (const char letter : text) {
    const std::string name(1, letter);
    places.push_back({name, name, places.size() + 1});
  }
  return places;
}

Topology chosen(const std::string& dims, const std::string& transport, const std::vector<RankPlace>& places) {
  return choose_topology({dims, "", transport}, places).value();
}

std::vector<uint64_t> bandwidths(const Topology& topology) {
  std::vector<uint64_t> all;
  for (const Dimension& dimension : topology.dimensions) all.push_back(dimension.bandwidth_mbps);
  return all;
}

using Bandwidths = std::vector<uint64_t>;

TEST(KnownRates, AreTheLeastSumOfARanksRails) {
  const std::vector<RankPlace> places = hosts("abc");
  Topology topology = chosen("", "", places);
  const std::string before = topology.reason;
  use_known_rates(places,
                  {{{{"eth0", 25'000}, {"eth1", 10'000}}}, {{{"p1", 2'500}, {"p2", 30'000}}}, {{{"eth0", 40'000}}}},
                  topology);
  EXPECT_EQ(bandwidths(topology), Bandwidths{32'500});
  EXPECT_EQ(topology.reason, before + "; dimension 1 has the 32.5 Gb/s that its rails are known to carry");
}

// The reason says what is assumed instead, whose rate is missing, and what to do.
TEST(KnownRates, AreNoneUnlessEveryRankKnowsEveryRail) {
  const std::vector<RankPlace> places = hosts("ab");
  const Topology nominal = chosen("", "", places);
  const std::vector<DimensionRail> known = {{"eth0", 25'000}};
  for (const RankRails& other :
       {RankRails{}, RankRails{{}}, RankRails{{{"eth0", 0}}}, RankRails{{{"eth0", 25'000}, {"eth1", 0}}}}) {
    Topology topology = nominal;
    use_known_rates(places, {{known}, other}, topology);
    EXPECT_EQ(topology.dimensions, nominal.dimensions);
    const bool named = !other.empty() && !other[0].empty();
    const std::string rail = named ? other[0].back().interface : "";
    EXPECT_EQ(topology.reason,
              nominal.reason + "; dimension 1 is as fast as its rails, whose rates are not known (rank 1" +
                  (named ? ", " + rail : "") + "), so 30 Gb/s are assumed; TRESTLE_RAILS can tell them, such as " +
                  (named ? rail : "eth0") + "@25g, and TRESTLE_CALIBRATE=full measures them");
    use_known_rates(places, {other, {known}}, topology);
    EXPECT_EQ(topology.dimensions, nominal.dimensions);
  }
}

TEST(KnownRates, GiveWayToABandwidthThatIsThere) {
  const std::vector<RankPlace> places = hosts("ab");
  Topology topology = chosen("", "", places);
  topology.dimensions[0].bandwidth_mbps = 7;
  use_known_rates(places, {{{{"eth0", 25'000}}}, {{{"eth0", 25'000}}}}, topology);
  EXPECT_EQ(bandwidths(topology), Bandwidths{7});
}

// Two ranks of each host use one interface; the second dimension has an interface for each of them.
TEST(KnownRates, OfAnInterfaceAreSharedByTheRanksOfItsHost) {
  const std::vector<RankPlace> places = hosts("aabb");
  for (const bool own : {false, true}) {
    Topology topology = chosen("2x2", "shm,tcp", places);
    std::vector<RankRails> rails;
    for (int r = 0; r < 4; ++r) {
      rails.push_back({{}, {{own ? "eth" + std::to_string(r % 2) : "eth0", 25'000}}});
    }
    use_known_rates(places, rails, topology);
    EXPECT_EQ(bandwidths(topology), (Bandwidths{0, own ? 25'000u : 12'500u}));
  }
}

// Data within a host does not leave over its interfaces, and shm has none.
TEST(KnownRates, CountForDimensionsThatJoinDifferentHostsOnly) {
  const std::vector<RankPlace> places = hosts("aabb");
  const RankRails both = {{{"eth0", 1000}}, {{"eth0", 1000}}};
  for (const char* transport : {"tcp", "shm,tcp"}) {
    Topology topology = chosen("2x2", transport, places);
    use_known_rates(places, std::vector<RankRails>(4, both), topology);
    EXPECT_EQ(bandwidths(topology), (Bandwidths{0, 500})) << transport;
  }
  for (const char* transport : {"tcp", "auto"}) {
    Topology flat = chosen("4", transport, places);
    use_known_rates(places, std::vector<RankRails>(4, both), flat);
    EXPECT_EQ(bandwidths(flat), Bandwidths{0}) << transport << ": some pairs are on one host";
  }
}

TEST(KnownRates, DoNotHideProcessorsThatRanksShare) {
  std::vector<RankPlace> places = hosts("abcd");
  for (RankPlace& place : places) {
    place.machine = "x";
    place.processors = {3};
  }
  Topology topology = chosen("", "", places);
  share_processors(places, topology);
  use_known_rates(places, std::vector<RankRails>(4, {{{"eth0", 25'000}}}), topology);
  EXPECT_EQ(topology.dimensions[0].bandwidth_mbps, 25'000u);
  EXPECT_EQ(topology.dimensions[0].shared_resource, "processors");
}

}  // namespace
}  // namespace trestle
