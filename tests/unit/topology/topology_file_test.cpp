// Topology files: valid contents, and errors about bad files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/rng.h"
#include "local/temporary_folder.h"
#include "topology/topology.h"

namespace trestle {
namespace {

class TopologyFile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TRESTLE_TOPOLOGY_FILES) GTEST_SKIP() << "topology files are not built in";
  }
};

const char kFull[] = R"({"dimensions":[
  {"size":4,"kind":"switch","bandwidth_gbps":200,"latency_ns":700,"transport":"shm"},
  {"size":2,"kind":"ring","bandwidth_gbps":25.5,"latency_ns":5000,"transport":"tcp","interface":"eth1",
   "shared":{"resource":"cpu","ps_per_byte":40}}
]})";

TEST_F(TopologyFile, ReadsEveryField) {
  const Topology topology = parse_topology(kFull, "t.json").value();
  ASSERT_EQ(topology.dimensions.size(), 2u);
  EXPECT_EQ(topology.dimensions[0],
            (Dimension{4, DimensionKind::kSwitch, 200000, 700, TransportKind::kShm, "", "", 0}));
  EXPECT_EQ(topology.dimensions[1],
            (Dimension{2, DimensionKind::kRing, 25500, 5000, TransportKind::kTcp, "eth1", "cpu", 40}));
  EXPECT_EQ(topology.reason, "topology file t.json");
}

TEST_F(TopologyFile, NothingSaidIsNominalAndZeroLatencyIsZero) {
  const auto topology =
      parse_topology(R"({"dimensions":[{"size":2},{"size":2.0,"latency_ns":0},{"size":2,"latency_ns":700.0}]})", "t")
          .value();
  EXPECT_EQ(topology.dimensions[0].latency_ns, kNominalLatency);
  EXPECT_EQ(topology.dimensions[1].latency_ns, 0u);
  EXPECT_EQ(topology.dimensions[2].latency_ns, 700u);
  EXPECT_FALSE(topology.dimensions[2].in_network_reduction);
}

Dimension only_dimension(const std::string& fields) {
  return parse_topology("{\"dimensions\":[{\"size\":2," + fields + "}]}", "t.json").value().dimensions.at(0);
}

TEST_F(TopologyFile, RailsWithRatesGiveTheDimensionTheirSum) {
  const std::string both =
      R"("rails":[{"interface":"eth1","bandwidth_gbps":25},{"interface":"eth2","bandwidth_gbps":0.001}])";
  for (const std::string& fields : {both, both + R"(,"bandwidth_gbps":25.001)", R"("bandwidth_gbps":25.001,)" + both}) {
    const Dimension dimension = only_dimension(fields);
    EXPECT_EQ(dimension.rails, (std::vector<DimensionRail>{{"eth1", 25'000}, {"eth2", 1}})) << fields;
    EXPECT_EQ(dimension.bandwidth_mbps, 25'001u) << fields;
    EXPECT_EQ(interfaces_text(dimension), "eth1@25g,eth2@1m") << fields;
  }
}

// If the rate of a rail is not given, nothing follows from the others.
TEST_F(TopologyFile, RailsWithoutRatesSayNothingOfTheDimension) {
  const std::string one = R"("rails":[{"interface":"eth1","bandwidth_gbps":25},{"interface":"eth2"}])";
  EXPECT_EQ(only_dimension(one).bandwidth_mbps, 0u);
  EXPECT_EQ(only_dimension(one + R"(,"bandwidth_gbps":3)").bandwidth_mbps, 3000u);
  EXPECT_EQ(interfaces_text(only_dimension(one)), "eth1@25g,eth2");
  EXPECT_EQ(interfaces_text(only_dimension(R"("interface":"eth7")")), "eth7");
  EXPECT_EQ(interfaces_text(only_dimension(R"("kind":"ring")")), "");
}

TEST_F(TopologyFile, LinksHaveTheirNominalSpeeds) {
  const struct {
    const char* link;
    uint64_t mbps;
  } cases[] = {{"nvlink1x4", 640'000},    {"nvlink2x6", 1'200'000},  {"nvlink3x12", 2'400'000},
               {"nvlink4x18", 3'600'000}, {"nvlink5x18", 7'200'000}, {"pcie1x4", 8'000},
               {"pcie2x1", 4'000},        {"pcie3x16", 126'030},     {"pcie4x16", 252'061},
               {"pcie5x16", 504'123},     {"pcie6x16", 1'024'000}};
  for (const auto& c : cases) {
    const Dimension dimension = only_dimension(std::string(R"("latency_ns":900,"link":")") + c.link + "\"");
    EXPECT_EQ(dimension.bandwidth_mbps, c.mbps) << c.link;
    EXPECT_EQ(dimension.latency_ns, 900u);
    EXPECT_EQ(dimension.transport, TransportKind::kAuto);
  }
}

TEST_F(TopologyFile, DropsSizeOneAndSaysSo) {
  const auto topology = parse_topology(R"({"dimensions":[{"size":1},{"size":3},{"size":1}]})", "t.json").value();
  ASSERT_EQ(topology.dimensions.size(), 1u);
  EXPECT_EQ(topology.dimensions[0].size, 3);
  EXPECT_EQ(topology.reason, "topology file t.json; dropped, because of size 1: dimension 1, 3");
  EXPECT_EQ(parse_topology(R"({"dimensions":[{"size":1},{"size":1}]})", "t.json").value().dimensions.size(), 1u);
}

void add_rails(Rng& rng, Dimension& dimension) {
  if (dimension.transport != TransportKind::kAuto) dimension.transport = TransportKind::kTcp;
  uint64_t sum_mbps = 0;
  bool complete = true;
  for (uint64_t k = 0, n = 1 + rng.below(4); k < n; ++k) {
    DimensionRail& rail = dimension.rails.emplace_back();
    rail.interface = "e\"" + std::to_string(k);
    if (rng.below(3) != 0) rail.bandwidth_mbps = 1 + rng.below(1'000'000);
    complete = complete && rail.bandwidth_mbps != 0;
    sum_mbps += rail.bandwidth_mbps;
  }
  if (complete) dimension.bandwidth_mbps = sum_mbps;
}

TEST_F(TopologyFile, RoundTrips) {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    Topology topology;
    for (uint64_t d = 0, n = 1 + rng.below(8); d < n; ++d) {
      Dimension& dimension = topology.dimensions.emplace_back();
      dimension.size = static_cast<int32_t>(2 + rng.below(6));
      dimension.kind = static_cast<DimensionKind>(rng.below(3));
      dimension.transport = static_cast<TransportKind>(rng.below(4));
      if (rng.below(2) != 0) dimension.bandwidth_mbps = 1 + rng.below(1'000'000'000);
      if (rng.below(2) != 0) dimension.latency_ns = rng.below(1'000'000'000);
      dimension.in_network_reduction = dimension.kind == DimensionKind::kSwitch && rng.below(2) != 0;
      dimension.unknown_network = rng.below(2) != 0;
      if (rng.below(2) != 0) dimension.interface = "e\"\\" + std::to_string(rng.below(9));
      if (dimension.interface.empty() && rng.below(2) != 0) add_rails(rng, dimension);
      if (rng.below(2) != 0) {
        dimension.shared_resource = "pci:0";
        dimension.shared_ps_per_byte = 1 + rng.below(1000);
      }
    }
    const auto back = parse_topology(to_json(topology), "t.json");
    ASSERT_TRUE(back.ok()) << back.error().message;
    ASSERT_EQ(back.value().dimensions, topology.dimensions) << to_json(topology);
    ASSERT_EQ(hash(back.value()), hash(topology));
  }
}

TEST_F(TopologyFile, BadOnesNameLineAndField) {
  const struct {
    std::string json;
    const char* said;
  } cases[] = {
      {"", "t.json:1: the text ends too early"},
      {"{\"dimensions\":[\n{\"size\":4,", "t.json:2: size: the text ends too early"},
      {"{\"dimensions\":[\n{\"size\":4,\n\"ki", "t.json:3: size: the text ends too early"},
      {"{\"dimensions\":[\n{\"size\":4", "t.json:2: size: the text ends too early"},
      {"[]", "t.json:1: must be an object with the field dimensions, not a list"},
      {"3", "must be an object"},
      {"{}", "t.json:1: dimensions: is missing"},
      {"{\n\"dimensions\":[]}", "t.json:2: dimensions: must not be empty"},
      {"{\"dimensions\":7}", "dimensions: must be a list, not a number"},
      {"{\"dimension\":[]}", "'dimension' is not a field; did you mean dimensions?"},
      {"{\"dimensions\":[{\"size\":2},\n7]}", "t.json:2: dimension 2: must be an object, not a number"},
      {"{\"dimensions\":[\n{\"kind\":\"ring\"}]}", "t.json:2: dimension 1: size: is missing"},
      {"{\"dimensions\":[{\"size\":2},\n{\"size\":2,\n\"bandwith_gbps\":4}]}",
       "t.json:3: dimension 2: 'bandwith_gbps' is not a field; did you mean bandwidth_gbps?"},
      {"{\"dimensions\":[{\"size\":2,\"bandwidth_gbps\":0}]}", "bandwidth_gbps: must be above 0"},
      {"{\"dimensions\":[{\"size\":2,\"bandwidth_gbps\":-1}]}", "bandwidth_gbps: must be above 0"},
      {"{\"dimensions\":[{\"size\":2,\"bandwidth_gbps\":-0.5}]}", "bandwidth_gbps: must be above 0"},
      {"{\"dimensions\":[{\"size\":2,\"bandwidth_gbps\":1e300}]}", "bandwidth_gbps: must be above 0"},
      {"{\"dimensions\":[{\"size\":2,\n\"bandwidth_gbps\":1e999}]}", "t.json:2: bandwidth_gbps: a number is too large"},
      {"{\"dimensions\":[{\"size\":2,\n\"bandwidth_gbps\":NaN}]}", "t.json:2: bandwidth_gbps: bad syntax at 'N'"},
      {"{\"dimensions\":[{\"size\":2,\"bandwidth_gbps\":\"25\"}]}", "bandwidth_gbps: must be a number, not a string"},
      {"{\"dimensions\":[{\"size\":0}]}", "size: must be a whole number from 1 to 2147483647"},
      {"{\"dimensions\":[{\"size\":-4}]}", "size: must be a whole number from 1"},
      {"{\"dimensions\":[{\"size\":2.5}]}", "size: must be a whole number from 1"},
      {"{\"dimensions\":[{\"size\":4294967298}]}", "size: must be a whole number from 1"},
      {"{\"dimensions\":[{\"size\":true}]}", "size: must be a whole number, not a boolean"},
      {"{\"dimensions\":[{\"size\":null}]}", "size: must be a whole number, not null"},
      {"{\"dimensions\":[{\"size\":2,\"size\":2}]}", "size: is given twice"},
      {"{\"dimensions\":[{\"size\":2,\"kind\":\"mesh\"}]}",
       "kind: 'mesh' is not a kind; there are ring, fully_connected, switch"},
      {"{\"dimensions\":[{\"size\":2,\"kind\":3}]}", "kind: must be a string, not a number"},
      {"{\"dimensions\":[{\"size\":2,\"transport\":\"rdma\"}]}",
       "transport: 'rdma' is not a transport; there are auto, loopback, shm, tcp"},
      {"{\"dimensions\":[{\"size\":2,\"latency_ns\":-1}]}", "latency_ns: must be a whole number from 0"},
      {"{\"dimensions\":[{\"size\":2,\"latency_ns\":0.5}]}", "latency_ns: must be a whole number from 0"},
      {"{\"dimensions\":[{\"size\":2,\"in_network_reduction\":1}]}",
       "in_network_reduction: must be true or false, not a number"},
      {"{\"dimensions\":[{\"size\":2,\"unknown_network\":\"no\"}]}",
       "unknown_network: must be true or false, not a string"},
      {"{\"dimensions\":[{\"size\":2},\n{\"size\":2,\"kind\":\"ring\",\"in_network_reduction\":true}]}",
       "t.json:2: dimension 2: in_network_reduction: is possible only in a dimension of kind switch"},
      {"{\"dimensions\":[{\"size\":2,\"interface\":\"\"}]}", "interface: must be a name"},
      {"{\"dimensions\":[{\"size\":2,\"interface\":\"a b\"}]}", "interface: must be a name"},
      {"{\"dimensions\":[{\"size\":2,\"shared\":4}]}", "shared: must be an object, not a number"},
      {"{\"dimensions\":[{\"size\":2,\"shared\":{\"resource\":\"cpu\"}}]}", "shared.ps_per_byte: is missing"},
      {"{\"dimensions\":[{\"size\":2,\"shared\":{\"ps_per_byte\":4}}]}", "shared.resource: is missing"},
      {"{\"dimensions\":[{\"size\":2,\"shared\":{\"name\":\"cpu\"}}]}",
       "shared: 'name' is not a field; there are resource"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":\"eth1\"}]}", "dimension 1: rails: must be a list, not a string"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[]}]}", "dimension 1: rails: must not be empty"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[\"eth1\"]}]}", "dimension 1: rail 1: must be an object, not a string"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"bandwidth_gbps\":1}]}]}", "rail 1: interface: is missing"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"a\"},\n{\"interface\":7}]}]}",
       "t.json:2: dimension 1: rail 2: interface: must be a string, not a number"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"a\",\"rate\":7}]}]}",
       "rail 1: 'rate' is not a field; there are interface, bandwidth_gbps"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"a\",\"bandwidth_gbps\":0}]}]}",
       "rail 1: bandwidth_gbps: must be above 0"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"eth1,eth2\"}]}]}",
       "rail 1: interface: 'eth1,eth2' is not the name of one interface"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"eth1@25g\"}]}]}",
       "'eth1@25g' is not the name of one interface"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"shm\"}]}]}", "'shm' is not the name of one interface"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"a\"},\n{\"interface\":\"a\"}]}]}",
       "t.json:2: dimension 1: rail 2: interface: 'a' is there twice"},
      {"{\"dimensions\":[{\"size\":2,\"interface\":\"a\",\n\"rails\":[{\"interface\":\"b\"}]}]}",
       "t.json:2: dimension 1: rails: cannot stand beside interface; please leave one of the two out"},
      {"{\"dimensions\":[{\"size\":2,\n\"rails\":[{\"interface\":\"b\"}],\n\"transport\":\"shm\"}]}",
       "t.json:2: dimension 1: rails: are possible only with a transport that has interfaces (tcp), not with shm"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"a\",\"bandwidth_gbps\":25},"
       "{\"interface\":\"b\",\"bandwidth_gbps\":10}],\n\"bandwidth_gbps\":30.5}]}",
       "t.json:2: dimension 1: bandwidth_gbps: is 30.5, but the rails carry 35 Gb/s together; please leave it out, or "
       "correct one of them"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"a\",\"bandwidth_gbps\":1e6},"
       "{\"interface\":\"b\",\"bandwidth_gbps\":0.001}]}]}",
       "rails: carry 1000000.001 Gb/s together, more than 1000000"},
      {"{\"dimensions\":[{\"size\":2,\n\"link\":\"nvlink9x4\"}]}",
       "t.json:2: dimension 1: link: must be a link and how many, such as nvlink4x18 or pcie5x16; links are nvlink1,"},
      {"{\"dimensions\":[{\"size\":2,\"link\":\"nvlink4\"}]}", "link: must be a link and how many"},
      {"{\"dimensions\":[{\"size\":2,\"link\":\"x\"}]}", "link: must be a link and how many"},
      {"{\"dimensions\":[{\"size\":2,\"link\":\"nvlink4x\"}]}", "link: must have from 1 to 18 nvlink4"},
      {"{\"dimensions\":[{\"size\":2,\"link\":\"nvlink4x19\"}]}", "link: must have from 1 to 18 nvlink4"},
      {"{\"dimensions\":[{\"size\":2,\"link\":\"pcie5x-1\"}]}", "link: must have from 1 to 32 pcie5"},
      {"{\"dimensions\":[{\"size\":2,\"link\":18}]}", "link: must be a string, not a number"},
      {"{\"dimensions\":[{\"size\":2,\"link\":\"pcie5x16\",\n\"bandwidth_gbps\":4}]}",
       "t.json:1: dimension 1: link: cannot stand beside bandwidth_gbps; please leave one of the two out"},
      {"{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"a\"}],\"link\":\"pcie5x16\"}]}",
       "link: cannot stand beside rails"},
      {"{\"dimensions\":[{\"size\":2}]} x", "t.json:1: bad syntax at 'x'"},
      {"{\"dimensions\":[{\"size\":2},]}", "bad syntax"},
      {"{\"dimensions\":[[[[[[[[[[[]]]]]]]]]]]}", "has more than 8 levels"},
      {"{\"dimensions\":[{\"size\":65536},{\"size\":65536}]}", "more than 2147483647 ranks"},
      {"{\"dimensions\":[{\"size\":2,\"interface\":\"\xff\"}]}", "interface: bad syntax at byte 255"},
  };
  for (const auto& c : cases) {
    const auto parsed = parse_topology(c.json, "t.json");
    ASSERT_FALSE(parsed.ok()) << c.json;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message.find(c.said), std::string::npos) << c.json << "\n" << parsed.error().message;
  }
  std::string many = "{\"dimensions\":[{\"size\":2,\"rails\":[{\"interface\":\"e0\"}";
  for (int k = 1; k < 17; ++k) many += ",{\"interface\":\"e" + std::to_string(k) + "\"}";
  EXPECT_NE(parse_topology(many + "]}]}", "t.json").error().message.find("rails: 17 rails, at most 16 are possible"),
            std::string::npos);
  std::string nine = "{\"dimensions\":[{\"size\":2}";
  for (int d = 0; d < 8; ++d) nine += ",{\"size\":2}";
  EXPECT_NE(parse_topology(nine + "]}", "t.json").error().message.find("9 dimensions, at most 8"), std::string::npos);
}

TEST_F(TopologyFile, EveryTruncationIsAnError) {
  const std::string full = kFull;
  for (size_t length = 0; length + 1 < full.size(); ++length) {
    const auto parsed = parse_topology(full.substr(0, length), "t.json");
    ASSERT_FALSE(parsed.ok()) << length;
    ASSERT_NE(parsed.error().message.find("t.json:"), std::string::npos) << parsed.error().message;
    ASSERT_NE(parsed.error().message.find("ends too early"), std::string::npos) << length << parsed.error().message;
  }
}

TEST_F(TopologyFile, IsChosenWithTransportsOnTop) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("topology.json", R"({"dimensions":[{"size":2,"transport":"tcp"},{"size":1},{"size":2}]})");
  const std::vector<RankPlace> where(4, RankPlace{"host", "id", 1});
  const Topology plain = choose_topology({"", path, "auto"}, where).value();
  ASSERT_EQ(plain.dimensions.size(), 2u);
  EXPECT_EQ(plain.dimensions[0].transport, TransportKind::kTcp);
  EXPECT_EQ(plain.dimensions[1].transport, TransportKind::kLoopback);
  const Topology forced = choose_topology({"", path, "shm,shm,tcp"}, where).value();
  EXPECT_EQ(forced.dimensions[0].transport, TransportKind::kShm);
  EXPECT_EQ(forced.dimensions[1].transport, TransportKind::kTcp);
  EXPECT_EQ(read_topology_file(path).value().dimensions.size(), 2u);
}

TEST_F(TopologyFile, MissingFileAndFolderAreErrors) {
  const auto missing = read_topology_file("/nonexistent/topology.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("/nonexistent/topology.json: cannot be opened"), std::string::npos);
  const auto folder = read_topology_file("/");
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().message.find("is not a file"), std::string::npos) << folder.error().message;
}

}  // namespace
}  // namespace trestle
