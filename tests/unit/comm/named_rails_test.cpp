// The rails of dimensions under names that all ranks know, although interfaces have other names on other hosts; and the
// bytes in which ranks exchange what they know of them.
#include "comm/setup/named_rails.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "comm/setup/routing.h"
#include "comm/setup/topology_agreement.h"
#include "support/grids.h"

namespace trestle {
namespace named_rails_test {
namespace {

Topology grid(size_t dimensions) {
  return even_grid(std::vector<int32_t>(dimensions, 2), {.transport = TransportKind::kTcp});
}

std::vector<NamedRails> named(const Topology& topology, const char* said) {
  return named_rails(topology, parse_rails(said).value(), 0).value();
}

// A topology of `hosts` hosts with `each` ranks, as it is found, with its dimensions' transports in words; and the
// rails that a TRESTLE_RAILS names for it.
struct Found {
  std::string transports;
  std::vector<NamedRails> rails;
  std::string error;
};

Found found(int hosts, int each, const char* said, const std::string& transport = "auto", bool mixed = false) {
  std::vector<RankPlace> places;
  for (int r = 0; r < hosts * each; ++r) {
    const std::string host = std::to_string(mixed ? r % hosts : r / each);
    places.push_back({host, host, static_cast<uint64_t>(r)});
  }
  const Topology topology = choose_topology({"", "", transport}, places).value();
  Found found;
  for (const Dimension& dimension : topology.dimensions)
    found.transports += (found.transports.empty() ? "" : " ") + std::string(to_string(dimension.transport));
  const auto entries = parse_rails(said).value();
  auto rails = named_rails(topology, entries, first_entry(topology, whereabouts(places), entries));
  if (rails.ok()) {
    found.rails = rails.value();
  } else {
    found.error = rails.error().message;
  }
  return found;
}

using All = std::vector<NamedRails>;

TEST(NamedRails, HaveTheNamesOfTheirPlaceInTheVariable) {
  EXPECT_EQ(named(grid(2), ""), (All{{}, {}}));
  EXPECT_EQ(named(grid(2), "auto"), (All{{}, {}}));
  EXPECT_EQ(named(grid(2), "eth0,eth1@25g"),
            (All{{"TRESTLE_RAILS:1", "eth0,eth1@25g"}, {"TRESTLE_RAILS:1", "eth0,eth1@25g"}}));
  EXPECT_EQ(named(grid(3), "auto;eth0"), (All{{}, {"TRESTLE_RAILS:2", "eth0"}, {"TRESTLE_RAILS:2", "eth0"}}));
  EXPECT_EQ(named(grid(3), "eth0;eth0;eth1"),
            (All{{"TRESTLE_RAILS:1", "eth0"}, {"TRESTLE_RAILS:2", "eth0"}, {"TRESTLE_RAILS:3", "eth1"}}));
}

// One value of the variable is right on hosts with several ranks and with one.
TEST(NamedRails, SkipWhatJoinsRanksOfOneHostWhereThereAreNone) {
  const All both{{}, {"TRESTLE_RAILS:2", "eth0,eth1"}};
  const All second{{"TRESTLE_RAILS:2", "eth0,eth1"}};
  EXPECT_EQ(found(2, 2, "shm;eth0,eth1").transports, "shm tcp");
  EXPECT_EQ(found(2, 2, "shm;eth0,eth1").rails, both);
  EXPECT_EQ(found(4, 1, "shm;eth0,eth1").transports, "tcp");
  EXPECT_EQ(found(4, 1, "shm;eth0,eth1").rails, second);
  EXPECT_EQ(found(4, 1, "loopback;shm;eth0,eth1").rails, (All{{"TRESTLE_RAILS:3", "eth0,eth1"}}));
  EXPECT_EQ(found(2, 2, "shm;eth0,eth1", "auto", true).rails, second);
  EXPECT_EQ(found(1, 4, "shm;eth0,eth1").rails, (All{{}}));
  EXPECT_EQ(found(4, 1, "auto;eth0").rails, (All{{}}));
}

TEST(NamedRails, ThatNameAnotherTransportAreRefused) {
  EXPECT_EQ(found(4, 1, "shm").error,
            "TRESTLE_RAILS says shm for dimension 1, which uses tcp; TRESTLE_TRANSPORT chooses transports");
  EXPECT_EQ(found(2, 2, "tcp;eth0").error,
            "TRESTLE_RAILS says tcp for dimension 1, which uses shm; TRESTLE_TRANSPORT chooses transports");
  EXPECT_EQ(found(1, 4, "shm;eth0", "tcp").error,
            "TRESTLE_RAILS says shm for dimension 1, which uses tcp; TRESTLE_TRANSPORT chooses transports");
  EXPECT_EQ(found(2, 2, "shm;tcp").error, "");
}

TEST(NamedRails, OfTheTopologyComeFirst) {
  Topology topology = grid(3);
  topology.dimensions[1].interface = "eth7";
  topology.dimensions[2].rails = {{"eth8", 25'000}, {"eth9", 0}};
  EXPECT_EQ(named(topology, "eth0"),
            (All{{"TRESTLE_RAILS:1", "eth0"}, {"eth7", "eth7", true}, {"eth8@25g,eth9", "eth8@25g,eth9", true}}));
}

// Whatever interfaces a rank has, it gives the same names to the same carriers.
TEST(NamedRails, MakeCarriersThatAllRanksNameAlike) {
  const Topology topology = grid(3);
  std::vector<RankPlace> places;
  for (uint64_t r = 0; r < 8; ++r) places.push_back({std::to_string(r), std::to_string(r), r});
  const auto routes = [&](const char* said) {
    return Routing(topology, whereabouts(places), 0, named(topology, said)).routes(0);
  };
  const RankRoutes one = routes("eth0;eth1,eth2");
  const RankRoutes other = routes("p1@1g,p2;p1");
  EXPECT_EQ(one.carriers, other.carriers);
  EXPECT_EQ(one.carrier_of, other.carrier_of);
  EXPECT_EQ(one.carrier_of, (std::vector<uint16_t>{0, 1, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(one.carriers[1].text(), "tcp@TRESTLE_RAILS:1");
  EXPECT_EQ(one.carriers[2].text(), "tcp@TRESTLE_RAILS:2");
}

const TopologyOffer kOffer{"{\"dimensions\":[]}", "{\"measured\":1}", {{}, {{"eth0", 25'000}, {"eth1", 0}}}};

TEST(TopologyOffer, RoundTrips) {
  EXPECT_EQ(decode_topology_offer(encode(kOffer)).value(), kOffer);
  EXPECT_EQ(decode_topology_offer(encode(TopologyOffer{})).value(), TopologyOffer{});
}

TEST(TopologyOffer, DamagedOnesAreRefusedOrHarmless) {
  const std::string bytes = encode(kOffer);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto offer = decode_topology_offer(bytes.substr(0, length));
    ASSERT_FALSE(offer.ok()) << length;
    EXPECT_EQ(offer.error().code, Code::kRemoteError);
  }
  EXPECT_FALSE(decode_topology_offer(bytes + "x").ok());
  TopologyOffer absurd = kOffer;
  absurd.rails[1][0].bandwidth_mbps = UINT64_MAX;
  EXPECT_FALSE(decode_topology_offer(encode(absurd)).ok());
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = bytes;
    damaged[rng.below(damaged.size())] = static_cast<char>(rng.next());
    const auto offer = decode_topology_offer(damaged);
    EXPECT_TRUE(!offer.ok() || offer.value().rails.size() <= damaged.size());
  }
}

}  // namespace
}  // namespace named_rails_test
}  // namespace trestle
