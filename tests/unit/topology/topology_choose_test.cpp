// The dimensions that a communicator gets from its configuration and from the places of its ranks.
#include <gtest/gtest.h>

#include "topology/topology.h"

namespace trestle {
namespace {

// One letter per rank: its host. A digit after the letter: its process there (without digits every rank has its own).
std::vector<RankPlace> places(const std::string& text) {
  std::vector<RankPlace> result;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string host(1, text[i]);
    uint64_t process = 1000 + i;
    if (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9')
      process = static_cast<uint64_t>(text[++i] - '0');
    result.push_back({"host-" + host, "id-" + host, process});
  }
  return result;
}

std::string sizes_and_transports(const Topology& topology) {
  std::string text;
  for (const Dimension& d : topology.dimensions) {
    text.append(text.empty() ? "" : " ").append(std::to_string(d.size)).append(":").append(to_string(d.transport));
  }
  return text;
}

struct Case {
  const char* places;
  const char* dims;
  const char* transport;
  const char* expected;
  const char* reason;
};

TEST(ChooseTopology, Chooses) {
  const Case cases[] = {
      {"aaaabbbb", "", "auto", "4:shm 2:tcp", "ranks per host x hosts = 4x2"},
      {"aaaaaaaa", "", "auto", "8:shm", "dropped, because of size 1: dimension 2"},
      {"a1a1a1a1", "", "auto", "4:loopback", "4x1"},
      {"a1a1a2a2", "", "auto", "4:shm", "4x1"},
      {"abcd", "", "auto", "4:tcp", "1x4"},
      {"aaabbbbb", "", "auto", "8:auto", "hosts have 3 + 5 ranks"},
      {"abab", "", "auto", "4:auto", "not consecutive"},
      {"a", "", "auto", "1:loopback", "1x1"},
      {"aaaaaaaa", "4x2", "auto", "4:shm 2:shm", "dimensions 4x2 as configured"},
      {"aaaaaaaa", "4x2", "shm,tcp", "4:shm 2:tcp", "dimensions 4x2"},
      {"aaaaaaaa", "4x2", "tcp", "4:tcp 2:tcp", "dimensions 4x2"},
      {"aaaaaaaa", "2x2x2", "shm,tcp", "2:shm 2:tcp 2:tcp", ""},
      {"aaaaaaaa", "4x1x2", "shm,shm,tcp", "4:shm 2:tcp", "dropped, because of size 1: dimension 2"},
      {"aaaaaaaa", "4x2", "auto,tcp", "4:shm 2:tcp", ""},
      {"aaaabbbb", "", "shm,tcp", "4:shm 2:tcp", ""},
      {"aaaa", "", "shm,tcp", "4:shm", ""},
      {"aabb", "4", "auto", "4:auto", ""},
      {"aabb", "2x2", "", "2:shm 2:tcp", ""},
      {"a1a1a2a2", "2x2", "auto", "2:loopback 2:shm", ""},
      {"a1a1a2a2", "2x2", "loopback,shm", "2:loopback 2:shm", ""},
      {"aabbccdd", "2x2x2", "auto", "2:shm 2:tcp 2:tcp", ""},
      {"aaaabbbb", "2x2x2", "auto", "2:shm 2:shm 2:tcp", ""},
      {"abab", "2x2", "auto", "2:tcp 2:auto", ""},
      {"a", "1x1", "auto", "1:loopback", "dimension 2"},
  };
  for (const Case& c : cases) {
    const auto chosen = choose_topology({c.dims, "", c.transport}, places(c.places));
    ASSERT_TRUE(chosen.ok()) << c.places << " " << c.dims << ": " << chosen.error().message;
    EXPECT_EQ(sizes_and_transports(chosen.value()), c.expected) << c.places << " " << c.dims << " " << c.transport;
    EXPECT_NE(chosen.value().reason.find(c.reason), std::string::npos) << chosen.value().reason;
  }
}

TEST(ChooseTopology, Refuses) {
  const Case cases[] = {
      {"aaaaaa", "4x2", "auto", "dimensions 4x2 hold 8 ranks, but the communicator has 6", ""},
      {"aaaa", "2x2", "shm,tcp,tcp", "3 entries, but there are 2 dimensions", ""},
      {"aaab", "", "shm,tcp", "2 entries, but there are 1 dimensions (hosts have 3 + 1 ranks", ""},
      {"aaaa", "2x2", "shm,infiniband", "'infiniband' is not a transport", ""},
      {"aabb", "2x2", "shm", "cannot join rank 0 (host host-a) and rank 2 (host host-b): they are on two hosts", ""},
      {"abab", "2x2", "tcp,shm", "transport shm of dimension 2 cannot join rank 1 (host host-b) and rank 2", ""},
      {"abbb", "2x2", "tcp,shm", "transport shm of dimension 2 cannot join rank 0 (host host-a) and rank 2", ""},
      {"aaab", "2x2", "tcp,shm", "cannot join rank 0 (host host-a) and rank 3 (host host-b)", ""},
      {"abaa", "2x2", "tcp,shm", "cannot join rank 1 (host host-b) and rank 2 (host host-a)", ""},
      {"a1a1a2a2", "2x2", "loopback", "cannot join rank 0 (host host-a) and rank 2 (host host-a): they are not in one",
       ""},
      {"aaab", "", "shm", "cannot join rank 0 (host host-a) and rank 3 (host host-b)", ""},
      {"aaaa", "2x", "auto", "a size is missing at character 3", ""},
  };
  for (const Case& c : cases) {
    const auto chosen = choose_topology({c.dims, "", c.transport}, places(c.places));
    ASSERT_FALSE(chosen.ok()) << c.places << " " << c.dims << " " << c.transport;
    EXPECT_EQ(chosen.error().code, Code::kInvalidArgument);
    EXPECT_NE(chosen.error().message.find(c.expected), std::string::npos) << chosen.error().message;
  }
}

TEST(ChooseTopology, RefusesMoreThanEightDimensions) {
  const std::vector<RankPlace> many(512, RankPlace{"host", "id", 1});
  const auto chosen = choose_topology({"2x2x2x2x2x2x2x2x2", "", "auto"}, many);
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.error().message.find("9 dimensions, at most 8"), std::string::npos) << chosen.error().message;
}

TEST(ChooseTopology, RefusesFileAndDimsTogether) {
  const auto chosen = choose_topology({"2", "topology.json", "auto"}, places("aa"));
  ASSERT_FALSE(chosen.ok());
  EXPECT_NE(chosen.error().message.find("only one of them"), std::string::npos);
}

// Ranks on hosts a, a, b, b, with the processors that each may use.
Topology chosen_with(const std::vector<uint64_t>& processors, const std::vector<std::string>& machines) {
  std::vector<RankPlace> where = places("aabb");
  for (size_t r = 0; r < where.size(); ++r) {
    where[r].machine = machines[r];
    if (processors[r] != 0) where[r].processors = {processors[r]};
  }
  Topology topology = choose_topology({"", "", "auto"}, where).value();
  share_processors(where, topology);
  return topology;
}

TEST(ChooseTopology, RanksThatOutnumberProcessorsShareThem) {
  const std::vector<std::string> two = {"x", "x", "y", "y"};
  const std::vector<std::string> one(4, "x");
  const Topology own = chosen_with({3, 3, 3, 3}, two);
  for (const Dimension& dimension : own.dimensions) {
    EXPECT_EQ(dimension.shared_resource, "");
    EXPECT_EQ(dimension.latency_ns, kNominalLatency);
  }
  // Each rank is bound to its own processor; and the processors are not known.
  EXPECT_EQ(hash(chosen_with({1, 2, 4, 8}, one)), hash(own));
  EXPECT_EQ(hash(chosen_with({0, 0, 0, 0}, one)), hash(own));
  const Topology shared = chosen_with({3, 3, 3, 3}, one);
  ASSERT_EQ(shared.dimensions.size(), 2u);
  EXPECT_NE(shared.reason.find("4 ranks share 2 processors"), std::string::npos) << shared.reason;
  for (const Dimension& dimension : shared.dimensions) {
    EXPECT_EQ(dimension.shared_resource, "processors");
    EXPECT_GT(dimension.latency_ns, facts_of(dimension.transport).latency_ns);
  }
  EXPECT_GT(shared.dimensions[1].shared_ps_per_byte, shared.dimensions[0].shared_ps_per_byte);
  EXPECT_NE(hash(shared), hash(own));
  // The machine with the most ranks per processor decides.
  const Topology full = chosen_with({3, 3, 1, 1}, two);
  EXPECT_EQ(full.dimensions, shared.dimensions);
}

// A plan depends on whether a network is unknown. So a topology that was written down must say so, too, and whoever
// describes a network may say it.
TEST(ChooseTopology, AnUnknownNetworkIsPartOfWhatIsWritten) {
  const std::vector<std::string> one(4, "x");
  const Topology shared = chosen_with({3, 3, 3, 3}, one);
  EXPECT_FALSE(shared.dimensions[0].unknown_network);
  EXPECT_TRUE(shared.dimensions[1].unknown_network);
  EXPECT_EQ(to_json(shared).find("unknown_network"), to_json(shared).rfind("unknown_network"));
  Topology known = shared;
  known.dimensions[1].unknown_network = false;
  EXPECT_NE(to_json(known), to_json(shared));
  EXPECT_NE(hash(known), hash(shared));
  if (TRESTLE_TOPOLOGY_FILES) {
    EXPECT_EQ(parse_topology(to_json(shared), "t").value().dimensions, shared.dimensions);
  }
  std::vector<RankPlace> where = places("aabb");
  for (RankPlace& place : where) place.processors = {1};
  Topology described = choose_topology({"", "", "auto"}, where).value();
  described.dimensions[0].unknown_network = true;
  share_processors(where, described);
  EXPECT_TRUE(described.dimensions[0].unknown_network);
}

TEST(ChooseTopology, TellsHowManyRanksShareAProcessor) {
  const auto sharing = [](const std::vector<uint64_t>& processors, const std::vector<std::string>& machines) {
    std::vector<RankPlace> where = places("aabb");
    for (size_t r = 0; r < where.size(); ++r) {
      where[r].machine = machines[r];
      if (processors[r] != 0) where[r].processors = {processors[r]};
    }
    return ranks_per_processor(where);
  };
  const std::vector<std::string> two = {"x", "x", "y", "y"};
  const std::vector<std::string> one(4, "x");
  EXPECT_EQ(sharing({3, 3, 3, 3}, two), 1);
  EXPECT_EQ(sharing({1, 2, 4, 8}, one), 1);
  EXPECT_EQ(sharing({0, 0, 0, 0}, one), 1);
  EXPECT_EQ(sharing({3, 3, 3, 3}, one), 2);
  EXPECT_EQ(sharing({7, 7, 7, 7}, one), 2);
  EXPECT_EQ(sharing({1, 1, 1, 1}, one), 4);
  EXPECT_EQ(sharing({3, 3, 4, 4}, two), 2);
}

TEST(ChooseTopology, WhatIsKnownOfALinkIsNotTakenFromIt) {
  std::vector<RankPlace> where = places("aabb");
  for (RankPlace& place : where) place.processors = {1};
  Topology topology = choose_topology({"", "", "auto"}, where).value();
  topology.dimensions[0].bandwidth_mbps = 1000;
  topology.dimensions[1].latency_ns = 7;
  const Dimension known = topology.dimensions[0];
  share_processors(where, topology);
  EXPECT_EQ(topology.dimensions[0], known);
  EXPECT_EQ(topology.dimensions[1].shared_resource, "processors");
  EXPECT_EQ(topology.dimensions[1].latency_ns, 7u);
  topology.dimensions[1].bandwidth_mbps = 1000;
  const Topology before = topology;
  share_processors(where, topology);
  EXPECT_EQ(topology.dimensions, before.dimensions);
  EXPECT_EQ(topology.reason, before.reason);
}

// Every pair must be served: compares the linear checks with the quadratic definition, for all assignments of 8 ranks
// to 2 hosts.
TEST(ChooseTopology, TransportsSuitEveryPair) {
  for (unsigned mask = 0; mask < 256; ++mask) {
    std::vector<RankPlace> where;
    for (unsigned rank = 0; rank < 8; ++rank) {
      const std::string host = (mask >> rank & 1u) != 0 ? "b" : "a";
      where.push_back({host, host, rank});
    }
    const Topology chosen = choose_topology({"2x2x2", "", "auto"}, where).value();
    for (uint8_t d = 0; d < 3; ++d) {
      bool all_same = true;
      bool all_apart = true;
      for (unsigned a = 0; a < 8; ++a) {
        for (unsigned b = 0; b < a; ++b) {
          if ((a ^ b) >> d != 1) continue;
          (where[a].host_id == where[b].host_id ? all_apart : all_same) = false;
        }
      }
      const TransportKind expected = all_same    ? TransportKind::kShm
                                     : all_apart ? TransportKind::kTcp
                                                 : TransportKind::kAuto;
      EXPECT_EQ(chosen.dimensions[d].transport, expected) << mask << " " << int{d};
      std::string list;
      for (uint8_t i = 0; i < 3; ++i) list.append(i == 0 ? "" : ",").append(i == d ? "shm" : "tcp");
      EXPECT_EQ(choose_topology({"2x2x2", "", list}, where).ok(), all_same) << mask << " " << list;
    }
  }
}

}  // namespace
}  // namespace trestle
