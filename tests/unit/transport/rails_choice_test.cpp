// Which interfaces of invented hosts are rails, and the reasons of those that are not.
#include <gtest/gtest.h>

#include <map>

#include "support/host_interfaces.h"
#include "transport/rails/choice.h"

namespace trestle {
namespace {

HostInterface bridge(HostInterface interface, bool hardware_port) {
  interface.facts.bridge = true;
  interface.facts.hardware_port = hardware_port;
  return interface;
}

RailRequest naming(std::vector<NamedInterface> names) {
  RailRequest request;
  request.interfaces = std::move(names);
  return request;
}

RailRequest filtered(const std::string& filter, AddressFamily family = AddressFamily::kAny) {
  RailRequest request;
  request.filter = filter;
  request.family = family;
  return request;
}

std::vector<std::string> rails_text(const RailChoice& choice) {
  return rails_text(choice.rails);
}

std::vector<std::string> left_out_text(const RailChoice& choice) {
  std::vector<std::string> texts;
  for (const LeftOutInterface& one : choice.left_out) texts.push_back(one.text());
  return texts;
}

using Texts = std::vector<std::string>;

// A host with everything that is no rail, and three that are.
std::vector<HostInterface> full_host() {
  HostInterface port = card("eth8", "10.0.8.1/24");
  port.facts.bridge_of = "br0";
  HostInterface tunnel = software("wg0", "10.9.0.1/24");
  tunnel.facts.tunnel = true;
  HostInterface unplugged = card("eth4", "10.0.4.1/24");
  unplugged.running = false;
  return {loopback(),
          card("eth0", "10.0.0.1/24 [fd00::1]/64", 25'000'000'000),
          card("eth1", "[fe80::1]/64 [fd00:1::1]/64"),
          down(card("eth2", "10.0.2.1/24")),
          card("eth3", ""),
          unplugged,
          card("eth5", "[fe80::5]/64"),
          bridge(software("docker0", "172.17.0.1/16"), false),
          bridge(software("lan", "192.168.7.1/24"), false),
          bridge(software("br0", "10.0.6.1/24"), true),
          port,
          software("cali12", "169.254.1.1/32"),
          tunnel};
}

TEST(Choice, TakesWhatLeadsOutOfTheHostAndSaysWhyNotTheRest) {
  const auto choice = choose_rails(full_host(), {});
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(rails_text(choice.value()),
            (Texts{"eth0 10.0.0.1 10.0.0.0/24", "eth1 [fd00:1::1] fd00:1::/64", "br0 10.0.6.1 10.0.6.0/24"}));
  EXPECT_EQ(
      left_out_text(choice.value()),
      (Texts{"lo: loopback", "eth2: down", "eth3: has no address", "eth4: up, but without a carrier",
             "eth5: has only link-local addresses", "docker0: a bridge of containers", "lan: a bridge of containers",
             "eth8: a port of the bridge br0", "cali12: belongs to containers, by its name", "wg0: a tunnel"}));
  EXPECT_EQ(choice.value().rails[0].rate_bps, 25'000'000'000u);
  EXPECT_FALSE(choice.value().rails[0].stated);
}

TEST(Choice, EveryInterfaceIsEitherARailOrLeftOut) {
  const std::vector<HostInterface> host = full_host();
  for (const RailRequest& request : {RailRequest{}, naming({{"eth1"}, {"eth2"}}), filtered("^eth0"),
                                     filtered("=br0,lo"), filtered("", AddressFamily::kIpv6)}) {
    const auto choice = choose_rails(host, request);
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    std::map<std::string, int> seen;
    for (const LocalRail& rail : choice.value().rails) ++seen[rail.interface];
    for (const LeftOutInterface& one : choice.value().left_out) ++seen[one.interface];
    EXPECT_EQ(seen.size(), host.size());
    for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
  }
}

TEST(Choice, NamedOnesAreTakenAsNamedWithTheirRates) {
  const auto choice = choose_rails(full_host(), naming({{"docker0"}, {"eth0", 10'000'000'000}, {"wg0"}, {"lo"}}));
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(rails_text(choice.value()), (Texts{"docker0 172.17.0.1 172.17.0.0/16", "eth0 10.0.0.1 10.0.0.0/24",
                                               "wg0 10.9.0.1 10.9.0.0/24", "lo 127.0.0.1 127.0.0.0/8"}));
  EXPECT_EQ(choice.value().rails[1].rate_bps, 10'000'000'000u);
  EXPECT_TRUE(choice.value().rails[1].stated);
  EXPECT_EQ(choice.value().rails[0].rate_bps, 0u);
  EXPECT_EQ(choice.value().left_out[0].text(), "eth1: not in TRESTLE_RAILS");
}

TEST(Choice, NamedOnesThatAreDownAreLeftOut) {
  const auto choice = choose_rails(full_host(), naming({{"eth2"}, {"eth0"}}));
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(rails_text(choice.value()), (Texts{"eth0 10.0.0.1 10.0.0.0/24"}));
  EXPECT_EQ(choice.value().left_out[2].text(), "eth2: down");
}

// The variable of sockets says where bootstrap goes; data may go elsewhere.
TEST(Choice, TheFilterDoesNotCountForNamedOnes) {
  RailRequest request = naming({{"eth0"}});
  request.filter = "=br0";
  const auto choice = choose_rails(full_host(), request);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(rails_text(choice.value()), (Texts{"eth0 10.0.0.1 10.0.0.0/24"}));
}

TEST(Choice, TheFilterIsThatOfSockets) {
  struct Case {
    const char* filter;
    Texts rails;
  };
  const Case kCases[] = {
      {"eth0", {"eth0 10.0.0.1 10.0.0.0/24"}},
      {"^eth", {"br0 10.0.6.1 10.0.6.0/24"}},
      {"^=eth0,br0", {"eth1 [fd00:1::1] fd00:1::/64"}},
      {"=docker0", {"docker0 172.17.0.1 172.17.0.0/16"}},  // it is asked for
      {"lo", {"lo 127.0.0.1 127.0.0.0/8"}},
      {"=", {"eth0 10.0.0.1 10.0.0.0/24", "eth1 [fd00:1::1] fd00:1::/64", "br0 10.0.6.1 10.0.6.0/24"}},
  };
  for (const Case& c : kCases) {
    const auto choice = choose_rails(full_host(), filtered(c.filter));
    ASSERT_TRUE(choice.ok()) << c.filter << ": " << choice.error().message;
    EXPECT_EQ(rails_text(choice.value()), c.rails) << c.filter;
  }
  const auto choice = choose_rails(full_host(), filtered("^eth0"));
  EXPECT_EQ(choice.value().left_out[1].text(), "eth0: TRESTLE_SOCKET_IFNAME '^eth0' leaves it out");
}

TEST(Filter, IsThatOfNccl) {
  struct Case {
    const char* filter;
    const char* name;
    bool matches;
  };
  const Case kCases[] = {{"", "eth0", true},        {"eth", "eth0", true},     {"eth", "ib0", false},
                         {"eth,ib", "ib0", true},   {"=eth", "eth0", false},   {"=eth0", "eth0", true},
                         {"=eth0,lo", "lo", true},  {"^docker", "eth0", true}, {"^docker", "docker0", false},
                         {"^eth,lo", "lo", false},  {"^=eth0", "eth0", false}, {"^=eth0", "eth01", true},
                         {"eth0,", "wlan0", false}, {"^", "eth0", true}};
  for (const Case& c : kCases) EXPECT_EQ(interface_matches(c.filter, c.name), c.matches) << c.filter << " " << c.name;
}

TEST(Filter, AnItemWithAColonIsALabel) {
  EXPECT_TRUE(interface_matches("=eth0", "eth0", "eth0:1"));
  EXPECT_TRUE(interface_matches("=eth1,eth0:1", "eth0", "eth0:1"));
  EXPECT_TRUE(interface_matches("=eth1,eth0:1", "eth1", "eth1:5")) << "eth1 with all its addresses";
  EXPECT_FALSE(interface_matches("=eth0:2", "eth0", "eth0:1"));
  EXPECT_FALSE(interface_matches("^=eth1,eth0:1", "eth0", "eth0:1"));
  EXPECT_FALSE(interface_matches("^=eth1,eth0:1", "eth1", "eth1:5"));
  EXPECT_TRUE(interface_matches("^eth0:1", "eth1", "eth1:5"));
}

TEST(Filter, MayNameOneOfAnInterfacesAddresses) {
  HostInterface eth0 = card("eth0", "10.0.0.1/24 10.0.1.1/24 10.0.2.1/24");
  eth0.addresses[1].label = "eth0:1";
  const std::vector<HostInterface> host = {loopback(), eth0, card("eth1", "10.0.3.1/24")};
  const struct {
    const char* filter;
    Texts rails;
  } kCases[] = {{"=eth0:1", {"eth0 10.0.1.1 10.0.1.0/24"}},
                {"^eth0:1,eth1", {"eth0 10.0.0.1 10.0.0.0/24"}},
                {"eth0", {"eth0 10.0.0.1 10.0.0.0/24"}}};
  for (const auto& one : kCases) {
    const auto choice = choose_rails(host, filtered(one.filter));
    ASSERT_TRUE(choice.ok()) << one.filter << ": " << choice.error().message;
    EXPECT_EQ(rails_text(choice.value()), one.rails) << one.filter;
  }
  EXPECT_EQ(choose_rails(host, filtered("=eth0:7")).error().code, Code::kInvalidArgument);
}

// ---- where one socket listens

Texts listens_at(const std::vector<HostInterface>& host, const std::string& met_at, const std::string& filter = "",
                 AddressFamily family = AddressFamily::kAny) {
  RailRequest request = filtered(filter, family);
  if (!met_at.empty()) request.met_at = parse_host(met_at).value();
  const auto addresses = listening_addresses(host, request);
  if (!addresses.ok()) return {addresses.error().message};
  Texts texts;
  for (const SocketAddress& one : addresses.value()) texts.push_back(HostAddress(one).text());
  return texts;
}

TEST(ListeningAddresses, AreWhereTheRanksHaveMetIfThatIsAllowed) {
  const std::vector<HostInterface> host = full_host();
  for (const char* met : {"127.0.0.1", "::1", "10.9.0.1", "172.17.0.1", "fd00::1"})
    EXPECT_EQ(listens_at(host, met), Texts{met}) << "whatever speaks against the interface";
  EXPECT_EQ(listens_at(host, "::ffff:10.9.0.1"), Texts{"10.9.0.1"});
  EXPECT_EQ(listens_at(host, "10.9.0.1", "eth,wg"), Texts{"10.9.0.1"});
  EXPECT_EQ(listens_at(host, "fd00::1", "", AddressFamily::kIpv6), Texts{"fd00::1"});
}

TEST(ListeningAddresses, AreThoseOfTheRailsOtherwise) {
  const std::vector<HostInterface> host = full_host();
  const Texts rails = {"10.0.0.1", "fd00:1::1", "10.0.6.1"};
  for (const char* none : {"", "192.0.2.1", "10.0.2.1"}) EXPECT_EQ(listens_at(host, none), rails) << none;
  EXPECT_EQ(listens_at(host, "10.9.0.1", "^wg"), rails);
  EXPECT_EQ(listens_at(host, "127.0.0.1", "=br0"), Texts{"10.0.6.1"});
  EXPECT_EQ(listens_at(host, "10.0.0.1", "", AddressFamily::kIpv6), (Texts{"fd00::1", "fd00:1::1"}));
  EXPECT_EQ(listens_at(host, "10.0.0.1", "=nosuch").front().find("no network interface matches"), 0u);
}

// ---- addresses on loopback that are none of loopback

TEST(Choice, AnAddressOnLoopbackThatOthersReachIsTakenIfThereIsNothingElse) {
  HostInterface lo = loopback();
  for (const InterfaceAddress& one : addresses_of("169.254.9.9/32 10.1.2.3/32 [fd00:9::3]/128"))
    lo.addresses.push_back(one);
  const HostInterface unnumbered = card("eth0", "[fe80::1]/64");
  const auto alone = choose_rails({lo, unnumbered}, {});
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  EXPECT_EQ(rails_text(alone.value()), Texts{"lo 10.1.2.3 10.1.2.3/32"});
  EXPECT_EQ(left_out_text(alone.value()), Texts{"eth0: has only link-local addresses"});
  const auto v6 = choose_rails({lo, unnumbered}, filtered("", AddressFamily::kIpv6));
  EXPECT_EQ(rails_text(v6.value()), Texts{"lo [fd00:9::3] fd00:9::3/128"});
  const auto beside = choose_rails({lo, card("eth0", "10.0.0.1/24")}, filtered("lo,eth"));
  EXPECT_EQ(rails_text(beside.value()), Texts{"eth0 10.0.0.1 10.0.0.0/24"});
}

TEST(Choice, TheFamilyChoosesTheAddress) {
  const auto v6 = choose_rails(full_host(), filtered("", AddressFamily::kIpv6));
  ASSERT_TRUE(v6.ok()) << v6.error().message;
  EXPECT_EQ(rails_text(v6.value()), (Texts{"eth0 [fd00::1] fd00::/64", "eth1 [fd00:1::1] fd00:1::/64"}));
  const auto v4 = choose_rails(full_host(), filtered("", AddressFamily::kIpv4));
  ASSERT_TRUE(v4.ok()) << v4.error().message;
  EXPECT_EQ(rails_text(v4.value()), (Texts{"eth0 10.0.0.1 10.0.0.0/24", "br0 10.0.6.1 10.0.6.0/24"}));
  EXPECT_EQ(v4.value().left_out[1].text(), "eth1: has no IPv4 address");
}

TEST(Choice, LoopbackIsTakenIfThereIsNothingElse) {
  const std::vector<HostInterface> host = {loopback(), down(card("eth0", "10.0.0.1/24")),
                                           bridge(software("docker0", "172.17.0.1/16"), false)};
  const auto choice = choose_rails(host, {});
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(rails_text(choice.value()), (Texts{"lo 127.0.0.1 127.0.0.0/8"}));
  EXPECT_EQ(left_out_text(choice.value()), (Texts{"eth0: down", "docker0: a bridge of containers"}));
}

TEST(Choice, LoopbackDoesNotStandInForNamedOnes) {
  const std::vector<HostInterface> host = {loopback(), down(card("eth0", "10.0.0.1/24")), card("eth1", "")};
  const auto choice = choose_rails(host, naming({{"eth0"}, {"eth1"}}));
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, Code::kSystemError);
  EXPECT_EQ(choice.error().message, "no interface of TRESTLE_RAILS can be a rail: eth0: down; eth1: has no address");
}

TEST(Choice, NamesThatDoNotExistGetThoseThatDo) {
  RailRequest request = naming({{"eth0"}, {"eth7"}});
  request.named_by = "dimension 2 of a.json";
  const auto choice = choose_rails({loopback(), card("eth0", "10.0.0.1/24"), card("eth3", "")}, request);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, Code::kInvalidArgument);
  EXPECT_EQ(choice.error().message,
            "dimension 2 of a.json names 'eth7', which is no interface of this host; there are: lo (127.0.0.1), eth0 "
            "(10.0.0.1), eth3");
}

TEST(Choice, AFilterThatMatchesNothingGetsTheList) {
  const auto choice = choose_rails({loopback(), card("eth0", "10.0.0.1/24")}, filtered("ib"));
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, Code::kInvalidArgument);
  EXPECT_EQ(choice.error().message,
            "no network interface matches TRESTLE_SOCKET_IFNAME 'ib'; there are: lo (127.0.0.1), eth0 (10.0.0.1)");
}

TEST(Choice, NothingAtAllIsAnErrorWithTheReasons) {
  const auto choice = choose_rails({down(card("eth0", "10.0.0.1/24")), down(loopback())}, {});
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, Code::kSystemError);
  EXPECT_EQ(choice.error().message, "no interface of this host can be a rail: eth0: down; lo: down");
}

TEST(Choice, SeveralInOneSubnetAreNumberedByName) {
  const std::vector<HostInterface> host = {card("eth2", "10.0.0.3/16"), card("eth0", "10.0.9.1/16"),
                                           card("eth3", "10.1.0.4/16"), card("eth1", "10.0.7.2/16")};
  const auto all = choose_rails(host, {});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(rails_text(all.value()), (Texts{"eth2 10.0.0.3 10.0.0.0/16#3", "eth0 10.0.9.1 10.0.0.0/16",
                                            "eth3 10.1.0.4 10.1.0.0/16", "eth1 10.0.7.2 10.0.0.0/16#2"}));
  const auto two = choose_rails(host, naming({{"eth2"}, {"eth1"}}));
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_EQ(rails_text(two.value()), (Texts{"eth2 10.0.0.3 10.0.0.0/16#2", "eth1 10.0.7.2 10.0.0.0/16"}));
}

// ---- where the ranks have met

struct MetCase {
  const char* what;
  std::string eth0;
  std::string eth1;
  const char* met_at;
  AddressFamily family;
  Texts rails;
  bool has_it;  // one of the rails is where the ranks have met
};

std::vector<MetCase> met_cases() {
  const std::string v4_0 = "10.0.0.1/24", v4_1 = "10.0.1.1/24";
  const std::string v6_0 = "[fe80::1]/64 [fd00::1]/64", v6_1 = "[fe80::2]/64 [fd00:1::1]/64";
  const std::string both_0 = v4_0 + " " + v6_0, both_1 = v4_1 + " " + v6_1;
  const std::string global_0 = "[2001:db8::1]/64", global_1 = "[2001:db8:1::1]/64";
  const Texts over_v4 = {"eth0 10.0.0.1 10.0.0.0/24", "eth1 10.0.1.1 10.0.1.0/24"};
  const Texts over_v6 = {"eth0 [fd00::1] fd00::/64", "eth1 [fd00:1::1] fd00:1::/64"};
  const auto any = AddressFamily::kAny, only_v4 = AddressFamily::kIpv4, only_v6 = AddressFamily::kIpv6;
  const Texts over_global = {"eth0 [2001:db8::1] 2001:db8::/64", "eth1 [2001:db8:1::1] 2001:db8:1::/64"};
  const std::string two_0 = global_0 + " " + v6_0, two_1 = v6_1 + " " + global_1;
  return {{"nothing is known", both_0, both_1, "", any, over_v4, false},
          {"IPv4 alone", v4_0, v4_1, "10.0.0.1", any, over_v4, true},
          {"IPv6 alone", v6_0, v6_1, "fd00::1", any, over_v6, true},
          {"the other rail", v6_0, v6_1, "fd00:1::1", any, over_v6, true},
          {"the other form", v6_0, v6_1, "[fd00::1]", any, over_v6, true},
          {"another spelling", v6_0, v6_1, "fd00:0:0::0001", any, over_v6, true},
          {"mapped IPv4", v4_0, v4_1, "::ffff:10.0.0.1", any, over_v4, true},
          {"both, met over IPv4", both_0, both_1, "10.0.1.1", any, over_v4, true},
          {"both, met over IPv6", both_0, both_1, "fd00::1", any, over_v6, true},
          {"both, met over IPv6, IPv4 demanded", both_0, both_1, "fd00::1", only_v4, over_v4, false},
          {"both, met over IPv4, IPv6 demanded", both_0, both_1, "10.0.0.1", only_v6, over_v6, false},
          {"one has no IPv6", both_0, v4_1, "fd00::1", any, {over_v6[0], over_v4[1]}, true},
          {"the second address", v6_0 + " " + global_0, v6_1, "2001:db8::1", any, {over_global[0], over_v6[1]}, true},
          {"a site's and global, met over the site's", two_0, two_1, "fd00::1", any, over_v6, true},
          {"the same, over the other rail", two_0, two_1, "fd00:1::1", any, over_v6, true},
          {"the same, met over a global one", two_0, two_1, "2001:db8::1", any, over_global, true},
          {"the same, over the other rail", two_0, two_1, "2001:db8:1::1", any, over_global, true},
          {"link-local", v6_0, v6_1, "fe80::1", any, over_v6, false},
          {"link-local IPv4 before IPv6", "169.254.7.1/16 " + v6_0, v6_1, "fd00::1", any, over_v6, true},
          {"loopback", v6_0, v6_1, "::1", any, over_v6, false},
          {"an address of no interface", v6_0, v6_1, "fd00::9", any, over_v6, false}};
}

TEST(Choice, TakesTheAddressWhereTheRanksHaveMetAndItsFamily) {
  for (const MetCase& c : met_cases()) {
    RailRequest request;
    request.family = c.family;
    if (*c.met_at != 0) request.met_at = parse_host(c.met_at).value();
    const auto choice = choose_rails({loopback(), card("eth0", c.eth0), card("eth1", c.eth1)}, request);
    ASSERT_TRUE(choice.ok()) << c.what << ": " << choice.error().message;
    EXPECT_EQ(rails_text(choice.value()), c.rails) << c.what;
    EXPECT_EQ(has_rail_at(choice.value().rails, request.met_at), c.has_it) << c.what;
  }
}

TEST(Fabric, IsTheNetworkOfTheAddress) {
  struct Case {
    const char* address;
    int prefix;
    const char* fabric;
  };
  const Case kCases[] = {{"10.77.21.3:1", 24, "10.77.21.0/24"}, {"10.77.21.3:1", 32, "10.77.21.3/32"},
                         {"10.77.21.3:1", 0, "0.0.0.0/0"},      {"10.77.255.3:1", 20, "10.77.240.0/20"},
                         {"10.77.21.3:1", 31, "10.77.21.2/31"}, {"[fd00:1:2:3:4::9]:1", 64, "fd00:1:2:3::/64"},
                         {"[fd00::1]:1", 128, "fd00::1/128"},   {"[fd00:1:2:3ff::]:1", 57, "fd00:1:2:380::/57"}};
  for (const Case& c : kCases)
    EXPECT_EQ(fabric_of(parse_address(c.address).value(), c.prefix).text(), c.fabric) << c.address;
  EXPECT_FALSE(Fabric{}.is_known());
  EXPECT_EQ(Fabric{}.text(), "an unnamed network");
}

// ---- where they are

LocalRail rail_at(int numa_node, uint64_t rate_bps) {
  LocalRail rail;
  rail.numa_node = numa_node;
  rail.rate_bps = rate_bps;
  return rail;
}

TEST(RailNodes, TheFastestNodeCounts) {
  constexpr uint64_t kSlow = 10'000'000'000, kFast = 25'000'000'000;
  EXPECT_EQ(numa_node_of({}), -1);
  EXPECT_EQ(numa_node_of({rail_at(-1, kFast)}), -1);
  EXPECT_EQ(numa_node_of({rail_at(-1, kFast), rail_at(3, 0)}), 3) << "the only one that is known";
  EXPECT_EQ(numa_node_of({rail_at(0, kSlow), rail_at(1, kFast)}), 1);
  EXPECT_EQ(numa_node_of({rail_at(0, kSlow), rail_at(1, kFast), rail_at(0, kFast)}), 0) << "together they are faster";
  EXPECT_EQ(numa_node_of({rail_at(1, kFast), rail_at(0, kFast)}), 0) << "the lower of equal ones";
  EXPECT_EQ(numa_node_of({rail_at(2, 0), rail_at(1, 0), rail_at(2, 0)}), 2) << "unknown rates count alike";
}

}  // namespace
}  // namespace trestle
