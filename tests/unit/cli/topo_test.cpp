// What `trestle topo` shows of invented machines, as text, JSON and SVG.
#include "cli/topo/topo_ranks.h"
#include "cli/topo/topo_view.h"
#include "topology/topology.h"
#include "unit/cli/views_support.h"

namespace trestle {
namespace {

MachineInterface interface_of(const std::string& name, int node, uint64_t rate_bps, const std::string& reason) {
  MachineInterface one;
  one.interface.name = name;
  one.interface.up = one.interface.running = true;
  one.interface.facts.numa_node = node;
  one.rate_bps = rate_bps;
  one.rail = reason.empty();
  if (one.rail) one.fabric = "10.0.0.0/24";
  one.reason = reason;
  return one;
}

// A package with two nodes, of which this process may use a part of one.
TopoView small_host() {
  TopoView view;
  Machine& machine = view.machine;
  machine.hostname = "alpha";
  machine.boot_id = "1-2-3";
  machine.source = "the kernel's files";
  machine.processors = {0, 1, 2, 3};
  machine.usable = {2};
  machine.packages = {{0, 4, {0, 1, 2, 3}, {2}}};
  machine.nodes = {{0, 0, uint64_t{3} << 29, {0, 1}, {}}, {1, 0, 0, {2, 3}, {2}}};
  machine.interfaces = {interface_of("lo", -1, 0, "loopback"), interface_of("eth0", 1, 25'000'000'000, "")};
  machine.interfaces[1].interface.facts.pci = "0000:3b:00.0";
  machine.interfaces[1].interface.facts.pci_bps = 126'030'769'230;
  machine.interfaces[1].addresses = {"10.0.0.7/24"};
  return view;
}

// small_host() with two GPUs, one of which is known in full.
TopoView host_with_gpus() {
  TopoView view = small_host();
  HostGpus& gpus = view.machine.gpus;
  gpus.list.push_back({.pci = "0000:07:00.0",
                       .name = "NVIDIA H100 80GB HBM3",
                       .uuid = "GPU-2d0e5a53-6a0b-4c5e-9a55-0f1f9c7c3a11",
                       .memory_bytes = uint64_t{80} << 30,
                       .numa_node = 1,
                       .pci_bps = 504'123'076'923,
                       .nvlinks = 18,
                       .nvlink_bps = 212'496'000'000,
                       .nics = {"eth0", "eth1"},
                       .nic_distance = NicDistance::kSwitch});
  gpus.list.push_back({.pci = "0000:0f:00.0"});
  gpus.notes = {"NVLinks of 0000:0f:00.0 unknown: it is lost"};
  return view;
}

LocalRail rail_of(const std::string& name, uint64_t rate_bps, int node) {
  LocalRail rail;
  rail.interface = name;
  rail.rate_bps = rate_bps;
  rail.numa_node = node;
  return rail;
}

TopoView with_dimensions() {
  TopoView view = small_host();
  view.topology.emplace();
  view.topology->reason = "as a test wants";
  view.topology->dimensions.resize(2);
  view.topology->dimensions[0].size = 4;
  view.topology->dimensions[0].transport = TransportKind::kShm;
  view.topology->dimensions[1].size = 2;
  view.topology->dimensions[1].transport = TransportKind::kTcp;
  view.topology->dimensions[1].bandwidth_mbps = 25'000;
  view.rails = {{}, {true, {rail_of("eth0", 25'000'000'000, 1), rail_of("eth1", 0, -1)}, ""}};
  return view;
}

TEST(TopoText, DrawsPackagesNodesAndInterfaces) {
  EXPECT_EQ(topo_text(small_host()),
            "host alpha: 1 package, 2 NUMA nodes, 4 cores, 4 processors (usable: 2)\n"
            "read from the kernel's files; boot id 1-2-3\n"
            "\n"
            "+- package 0, 4 cores --------------------------------------------------------------------+\n"
            "| node 0: 1.5 GiB, processors 0-1 (none usable)                                          |\n"
            "| node 1: memory unknown, processors 2-3 (usable: 2)                                     |\n"
            "|   eth0  25 Gb/s        up  PCI 0000:3b:00.0 (126 Gb/s)  10.0.0.7/24  rail, 10.0.0.0/24 |\n"
            "+----------------------------------------------------------------------------------------+\n"
            "interfaces at no known node:\n"
            "  lo    speed unknown  up  -                            no address   no rail: loopback\n");
}

TEST(TopoText, SaysTheRailsOfDimensions) {
  const std::string text = topo_text(with_dimensions());
  expect_parts(text, {"\nrails of dimension 2 here: eth0 25 Gb/s at node 1, eth1 speed unknown\n"});
  EXPECT_EQ(text.find("rails of dimension 1"), std::string::npos) << "shared memory has none";
  TopoView none = with_dimensions();
  none.rails[1] = {true, {}, "the topology's interface names 'eth7'"};
  expect_parts(topo_text(none), {"dimension 2 here: none: the topology's interface names 'eth7'\n"});
}

TEST(TopoText, SaysWhatItDoesNotKnow) {
  TopoView view = small_host();
  view.machine.packages = {{-1, 0, {0, 1, 2, 3}, {2}}};
  for (MachineNode& node : view.machine.nodes) node.package = -1;
  view.machine.interfaces.clear();
  view.machine.no_rails = "no interface of this host can be a rail: there is none";
  const std::string text = topo_text(view);
  expect_parts(text, {"+- package unknown -", "+- nodes of no single package -",
                      "\nno interface of this host can be a rail: there is none\n"});
  EXPECT_EQ(text.find("core"), std::string::npos) << text;
}

// ---- GPUs

TEST(TopoText, DrawsGpusInTheirNode) {
  expect_parts(topo_text(host_with_gpus()),
               {"4 processors (usable: 2), 2 GPUs\n",
                "|   GPU 0000:07:00.0  NVIDIA H100 80GB HBM3  GPU-2d0e5a53  80 GiB          PCIe 504.1 Gb/s     18 "
                "NVLinks       nearest: eth0, eth1 (same PCIe switch) |\n|   eth0  25 Gb/s ",
                "GPUs at no known node:\n  GPU 0000:0f:00.0  name unknown           -             memory unknown  PCIe "
                "speed unknown  NVLinks unknown  nearest: none\nNVLinks of 0000:0f:00.0 unknown: it is lost\n"});
}

std::string links_of(const HostGpus& gpus, size_t most = 64) {
  std::string text;
  for (const GpuLinkWords& one : gpu_link_words(gpus, most)) text += one.gpus + ": " + one.links + "\n";
  return text;
}

TEST(TopoText, ListsThePairsThatNvlinksJoin) {
  HostGpus gpus;
  for (const char* pci : {"a", "b", "c"}) gpus.list.push_back({.pci = pci});
  gpus.links = {{"a", "b", 4, 800'000'000'000, false}, {"a", "c", 1, 0, false}};
  EXPECT_EQ(links_of(gpus), "a - b: 4 NVLinks, 100 GB/s\na - c: 1 NVLink, speed unknown\n");
  EXPECT_EQ(links_of(gpus, 1), "a - b: 4 NVLinks, 100 GB/s\nleft out: 1 more pair; --json has all\n");
  gpus.links[1].through_switch = true;
  EXPECT_EQ(links_of(gpus), "a - b: 4 NVLinks, 100 GB/s\na - c: 1 NVLink each, through NVSwitches, speed unknown\n");
  EXPECT_EQ(links_of({}), "");
}

TEST(TopoText, SwitchesThatJoinAllGpusAlikeAreOneLine) {
  HostGpus gpus;
  for (const char* pci : {"a", "b", "c"}) gpus.list.push_back({.pci = pci});
  gpus.links = {{"a", "b", 18, 3'824'928'000'000, true},
                {"a", "c", 18, 3'824'928'000'000, true},
                {"b", "c", 18, 3'824'928'000'000, true}};
  EXPECT_EQ(links_of(gpus), "all 3 GPUs: 18 NVLinks each, through NVSwitches, 478.1 GB/s\n");
  gpus.links[2].nvlinks = 17;
  EXPECT_EQ(gpu_link_words(gpus).size(), 3u) << "one pair has fewer";
  gpus.links.pop_back();
  EXPECT_EQ(gpu_link_words(gpus).size(), 2u) << "one pair is not joined";
}

TEST(TopoText, SaysThatNoNvlinkJoinsGpus) {
  TopoView view = small_host();
  const auto says_none = [&](std::vector<Gpu> gpus) {
    view.machine.gpus.list = std::move(gpus);
    return topo_text(view).find("NVLinks between GPUs: none\n") != std::string::npos;
  };
  EXPECT_FALSE(says_none({}));
  EXPECT_FALSE(says_none({{.pci = "a", .nvlinks = 0}})) << "there is no pair";
  EXPECT_TRUE(says_none({{.pci = "a", .nvlinks = 0}, {.pci = "b", .nvlinks = 0}}));
  EXPECT_FALSE(says_none({{.pci = "a", .nvlinks = 0}, {.pci = "b", .nvlinks = -1}})) << "nobody knows";
  view.machine.gpus.links = {{"a", "b", 4, 800'000'000'000, false}};
  EXPECT_FALSE(says_none({{.pci = "a", .nvlinks = 4}, {.pci = "b", .nvlinks = 4}}));
  expect_parts(topo_text(view), {"\nNVLinks between GPUs, speeds one way:\n  a - b  4 NVLinks, 100 GB/s\n"});
}

TEST(TopoText, HasWordsForEveryDistance) {
  Gpu gpu{.pci = "a", .nics = {"eth0"}};
  std::string all;
  for (const NicDistance distance : {NicDistance::kSwitch, NicDistance::kRootPort, NicDistance::kNode,
                                     NicDistance::kElsewhere, NicDistance::kUnknown}) {
    gpu.nic_distance = distance;
    all += nearest_words(gpu) + "\n";
  }
  EXPECT_EQ(all,
            "eth0 (same PCIe switch)\neth0 (same root port)\neth0 (same NUMA node)\neth0 (another NUMA node)\n"
            "eth0 (not known how near)\n");
}

TEST(TopoJson, HasGpusIfThereAreSome) {
  TopoView view = host_with_gpus();
  view.machine.gpus.links = {{"0000:07:00.0", "0000:0f:00.0", 4, 849'984'000'000, false},
                             {"0000:07:00.0", "0000:17:00.0", 18, 0, true}};
  Json host = Json::parse(topo_json(view))["host"];
  EXPECT_EQ(host["gpus"][0], Json::parse(R"({"pci":"0000:07:00.0","uuid":"GPU-2d0e5a53-6a0b-4c5e-9a55-0f1f9c7c3a11",
                            "name":"NVIDIA H100 80GB HBM3","memory_bytes":85899345920,"node":1,
                            "pci_bps":504123076923,"nvlinks":18,"nvlink_bps":212496000000,
                            "interfaces":["eth0","eth1"],"distance":"switch"})"));
  EXPECT_EQ(host["gpus"][1],
            Json::parse(R"({"pci":"0000:0f:00.0","uuid":null,"name":null,"memory_bytes":null,"node":null,
                            "pci_bps":null,"nvlinks":null,"nvlink_bps":null,"interfaces":[],"distance":null})"));
  EXPECT_EQ(host["gpu_links"], Json::parse(R"([{"gpus":["0000:07:00.0","0000:0f:00.0"],"nvlinks":4,
                                                "rate_bps":849984000000,"through_switch":false},
                                               {"gpus":["0000:07:00.0","0000:17:00.0"],"nvlinks":18,
                                                "rate_bps":null,"through_switch":true}])"));
  EXPECT_EQ(host["gpu_notes"], Json::parse(R"(["NVLinks of 0000:0f:00.0 unknown: it is lost"])"));
  Json none = Json::parse(topo_json(small_host()))["host"];
  for (const char* member : {"gpus", "gpu_links", "gpu_notes"}) EXPECT_FALSE(none.contains(member)) << member;
}

// ---- ranks

std::vector<RankLetter> letters_of(int ranks, int hosts) {
  std::vector<RankLetter> letters;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string host = std::to_string(rank * hosts / ranks);
    letters.push_back({"node" + host, "id" + host, "boot" + host, std::to_string(rank % 4), "summary " + host});
  }
  return letters;
}

TEST(TopoRanks, LettersAreReadBack) {
  const RankLetter letter{"alpha", "17", "1-2-3", "0-3,8", "1 package"};
  EXPECT_EQ(decode_letter(encode(letter)), letter);
  RankLetter large{std::string(2000, 'h'), "17", "", "0", std::string(2000, 's') + "\nmore"};
  for (int i = 2; i < 600; i += 2) large.processors += "," + std::to_string(i);
  EXPECT_LT(encode(large).size(), 1000u);
  const RankLetter read = decode_letter(encode(large));
  EXPECT_TRUE(read.summary.starts_with("sss") && read.summary.ends_with("...")) << read.summary;
  EXPECT_EQ(read.processors, "") << "a part of the list would be wrong";
  EXPECT_EQ(decode_letter(""), RankLetter{});
}

TEST(TopoRanks, HostsAreToldApart) {
  const RanksOfJob job = ranks_from(letters_of(4, 2));
  ASSERT_EQ(job.ranks.size(), 4u);
  EXPECT_EQ(job.ranks[1].host_index, 0);
  EXPECT_EQ(job.ranks[3].host, "node1");
  EXPECT_EQ(job.ranks[3].host_index, 1);
  ASSERT_EQ(job.others.size(), 1u);
  EXPECT_EQ(job.others[0].summary, "summary 1");
  EXPECT_EQ(job.places[2].host_id, "id1");
  EXPECT_EQ(job.places[2].machine, "boot1");
  EXPECT_EQ(job.places[2].processors, std::vector<uint64_t>{0b100});
  EXPECT_NE(job.places[2].process_id, job.places[3].process_id);
}

TEST(TopoRanks, AreListedAndWhatIsLeftOutIsSaid) {
  TopoView view = small_host();
  RanksOfJob job = ranks_from(letters_of(4, 2));
  view.ranks = job.ranks;
  view.others = job.others;
  const std::string few = topo_text(view);
  expect_parts(few, {"\n4 ranks on 2 hosts; the drawing is of rank 0's\nrank 0     node0  processors 0\n",
                     "\nhost node1: summary 1\n"});
  EXPECT_EQ(few.find("left out"), std::string::npos);
  job = ranks_from(letters_of(100, 50));
  view.ranks = job.ranks;
  view.others = job.others;
  expect_parts(topo_text(view),
               {"\nleft out: 36 more ranks; --json has all\n", "\nleft out: 33 more hosts; --json has all\n"});
  Json read = Json::parse(topo_json(view));
  EXPECT_EQ(read["ranks"].size(), 100u);
  EXPECT_EQ(read["hosts"].size(), 49u);
  EXPECT_EQ(read["hosts"][0]["summary"], "summary 1");
  EXPECT_EQ(read["ranks"][99]["host_index"], 49);
}

// ---- JSON

TEST(TopoJson, HasTheMembersOfTheManual) {
  Json host = Json::parse(topo_json(small_host()))["host"];
  EXPECT_EQ(host["name"], "alpha");
  EXPECT_EQ(host["usable"], "2");
  EXPECT_EQ(host["packages"], Json::parse(R"([{"number":0,"cores":4,"processors":"0-3","usable":"2"}])"));
  EXPECT_EQ(host["nodes"][0], Json::parse(R"({"number":0,"package":0,"memory_bytes":1610612736,
                                              "processors":"0-1","usable":""})"));
  EXPECT_EQ(host["nodes"][1]["memory_bytes"], nullptr);
  EXPECT_EQ(host["interfaces"][0], Json::parse(R"({"name":"lo","state":"up","rate_bps":null,"node":null,"pci":null,
                                                   "pci_bps":null,"addresses":[],"rail":false,"fabric":null,
                                                   "reason":"loopback"})"));
  EXPECT_EQ(host["interfaces"][1],
            Json::parse(R"({"name":"eth0","state":"up","rate_bps":25000000000,"node":1,"pci":"0000:3b:00.0",
                            "pci_bps":126030769230,"addresses":["10.0.0.7/24"],"rail":true,"fabric":"10.0.0.0/24",
                            "reason":null})"));
  EXPECT_FALSE(host.contains("dimension_rails"));
}

TEST(TopoJson, WithDimensionsIsATopologyFile) {
  TopoView view = with_dimensions();
  view.ranks = ranks_from(letters_of(8, 2)).ranks;
  const std::string text = topo_json(view);
  Json read = Json::parse(text);
  EXPECT_EQ(read["dimensions"].size(), 2u);
  EXPECT_EQ(read["host"]["dimension_rails"], Json::parse(R"([[],["eth0","eth1"]])"));
  const auto topology = parse_topology(text, "t.json");
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_EQ(topology.value().dimensions, view.topology->dimensions);
}

// ---- SVG

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(TopoSvg, HasEveryProcessorInterfaceAndGpu) {
  const std::string svg = topo_svg(with_dimensions());
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(count(svg, "<title>processor "), 4u);
  EXPECT_EQ(count(svg, ", not usable here</title>"), 3u);
  expect_parts(svg, {"host alpha", "package 0", "node 1, memory unknown", "eth0, 25 Gb/s", "no rail: loopback",
                     "dimension 2: 2 ranks", "tcp, 25 Gb/s", "rails here: eth0 25 Gb/s at node 1"});
  EXPECT_EQ(svg.find("GPU"), std::string::npos);
  TopoView gpus = host_with_gpus();
  gpus.machine.gpus.links = {{"0000:07:00.0", "0000:0f:00.0", 4, 800'000'000'000, false}};
  expect_parts(topo_svg(gpus),
               {">GPU 0000:07:00.0, 80 GiB<", ">NVIDIA H100 80GB HBM3, 18 NVLinks<",
                "GPU-2d0e5a53-6a0b-4c5e-9a55-0f1f9c7c3a11, PCIe 504.1 Gb/s, nearest interface: eth0, eth1",
                ">GPUs at no known node<", ">NVLinks between GPUs, speeds one way<", ">0000:07:00.0 - 0000:0f:00.0<",
                ">4 NVLinks, 100 GB/s<", "NVLinks of 0000:0f:00.0 unknown: it is lost", ">GPU<"});
}

// Everything lies inside the picture, whatever the machine.
TEST(TopoSvg, GrowsWithTheMachine) {
  TopoView view;
  Machine& machine = view.machine;
  for (int package = 0; package < 3; ++package) {
    machine.packages.push_back({package, 0, {}, {}});
    for (int n = 0; n < 5; ++n) {
      MachineNode node{5 * package + n, package, 1, {}, {}};
      for (int i = 0; i < 100 * n; ++i) node.processors.push_back(i);
      machine.nodes.push_back(node);
      for (int i = 0; i < n; ++i) machine.interfaces.push_back(interface_of("eth", node.number, 1, "down"));
    }
  }
  for (int i = 0; i < 9; ++i) machine.interfaces.push_back(interface_of("veth", -1, 0, "down"));
  for (int i = 0; i < 40; ++i) {
    machine.gpus.list.push_back({.pci = std::to_string(i), .name = std::string(96, 'n'), .numa_node = i % 20 - 1});
    machine.gpus.links.push_back({"0", std::to_string(i), 18, 1, i % 2 == 0});
  }
  const std::string svg = topo_svg(view);
  const double height = std::stod(svg.substr(svg.find("height=\"") + 8));
  for (size_t at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) {
    const auto value = [&](const char* name) {
      return std::stod(svg.substr(svg.find(name, at) + std::string(name).size()));
    };
    EXPECT_LE(value(" x=\"") + value(" width=\""), 1200.01);
    EXPECT_LE(value(" y=\"") + value(" height=\""), height + 0.01);
  }
  EXPECT_EQ(count(svg, "<title>processor "), 3 * (100u + 200 + 300 + 400));
}

}  // namespace
}  // namespace trestle
