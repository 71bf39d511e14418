// Where a tcp endpoint listens: at the address where the ranks have met, if the user's choice allows it. And which
// rails it finds from there.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/host_interfaces.h"
#include "transport/tcp/tcp_rail.h"

namespace trestle {
namespace {

// Two cards with both families each.
std::vector<HostInterface> two_cards() {
  return {loopback(), card("eth0", "10.0.0.1/24 [fe80::1]/64 [fd00::1]/64"),
          card("eth1", "10.0.1.1/24 [fe80::2]/64 [fd00:1::1]/64"), down(card("eth2", "[fd00:2::1]/64"))};
}

std::string single_at(const TcpTransportOptions& options, const std::string& interface = "") {
  EndpointConfig config;
  config.interface = interface;
  const auto at = single_addresses(two_cards(), config, options);
  return at.ok() ? HostAddress(at.value().front()).text() : at.error().message;
}

// Of several interfaces that are allowed, another one may be better by itself, and be down on the other hosts.
TEST(TcpListen, IsWhereTheRanksHaveMetIfThatIsAllowed) {
  TcpTransportOptions options;
  EXPECT_EQ(single_at(options), "10.0.0.1");
  options.local_ip = parse_host("10.0.1.1").value();
  EXPECT_EQ(single_at(options), "10.0.1.1");
  EXPECT_EQ(single_at(options, "eth0"), "10.0.0.1") << "another one is named";
  EXPECT_EQ(single_at(options, "nosuch").find("the topology's interface names 'nosuch'"), 0u);
  options.rails = "eth0";
  EXPECT_EQ(single_at(options), "10.0.0.1") << "in TRESTLE_RAILS, too";
  options.rails.clear();
  options.socket_ifname = "^eth1";
  EXPECT_EQ(single_at(options), "10.0.0.1");
  options.socket_ifname.clear();
  options.socket_family = "AF_INET6";
  EXPECT_EQ(single_at(options), "fd00::1");
}

// ---- interfaces that go down while rails are made

LocalRail rail_at(const std::string& interface) {
  LocalRail rail;
  rail.interface = interface;
  rail.address = parse_host("127.0.0.1").value().address();
  return rail;
}

// How often it looked.
int looks_until(bool success, const std::vector<std::vector<std::string>>& found) {
  EndpointConfig config;
  config.ranks = 2;
  TcpTransportOptions options;
  options.local_ip = parse_host("127.0.0.1").value();
  options.socket_ifname = "lo";
  size_t looks = 0;
  const auto made = make_tcp_rails(config, options, [&]() -> Result<RailChoice> {
    RailChoice choice;
    for (const std::string& interface : found[std::min(looks++, found.size() - 1)])
      choice.rails.push_back(rail_at(interface));
    return choice;
  });
  EXPECT_EQ(made.ok(), success) << (made.ok() ? "" : made.error().message);
  return static_cast<int>(looks);
}

TEST(TcpRailsThatGoDown, AreLeftOutWhereOthersAreFound) {
  EXPECT_EQ(looks_until(true, {{"lo"}}), 1);
  EXPECT_EQ(looks_until(true, {{"lo", "gone0"}, {"lo"}}), 2);
  EXPECT_EQ(looks_until(true, {{"gone0", "gone1", "lo"}, {"gone1", "lo"}, {"lo"}}), 3);
}

TEST(TcpRailsThatGoDown, AreAnErrorIfTheyAreFoundAgain) {
  EXPECT_EQ(looks_until(false, {{"lo", "gone0"}}), 2);
  EXPECT_EQ(looks_until(false, {{"gone0"}}), 2);
}

TEST(TcpRailsThatGoDown, AndComeAllTheTimeAreGivenUp) {
  std::vector<std::vector<std::string>> found;
  for (int i = 0; i < 20; ++i) found.push_back({"lo", "gone" + std::to_string(i)});
  EXPECT_EQ(looks_until(false, found), 8);
}

// ---- which rails are found

using Texts = std::vector<std::string>;

Texts found(const std::string& met_at, const TcpTransportOptions& given = {}, const EndpointConfig& config = {}) {
  TcpTransportOptions options = given;
  if (!met_at.empty()) options.local_ip = parse_host(met_at).value();
  const auto choice = choose_tcp_rails(two_cards(), config, options);
  return choice.ok() ? rails_text(choice.value().rails) : Texts{choice.error().message};
}

const Texts kOverV4 = {"eth0 10.0.0.1 10.0.0.0/24", "eth1 10.0.1.1 10.0.1.0/24"};
const Texts kOverV6 = {"eth0 [fd00::1] fd00::/64", "eth1 [fd00:1::1] fd00:1::/64"};

TEST(TcpRails, AreAllThatAreFoundIfTheRanksHaveMetOverOne) {
  for (const char* met : {"10.0.0.1", "10.0.1.1", "::ffff:10.0.0.1"}) EXPECT_EQ(found(met), kOverV4) << met;
  for (const char* met : {"fd00::1", "[fd00::1]", "fd00:1::1", "fd00:1:0::1"}) EXPECT_EQ(found(met), kOverV6) << met;
}

// What they met over is known to reach them. So none means one rail, where they have met.
TEST(TcpRails, AreNotGuessed) {
  for (const char* met : {"", "127.0.0.1", "::1", "10.0.2.1", "fd00:2::1", "fd00::9", "fe80::1"})
    EXPECT_EQ(found(met), Texts()) << met;
  TcpTransportOptions options;
  options.socket_family = "AF_INET";
  EXPECT_EQ(found("fd00::1", options), Texts()) << "met over what must not be used";
  EXPECT_EQ(found("10.0.0.1", options), kOverV4);
  options.socket_family = "AF_INET6";
  EXPECT_EQ(found("10.0.0.1", options), Texts());
  EXPECT_EQ(found("fd00::1", options), kOverV6);
  options.socket_ifname = "^eth1";
  EXPECT_EQ(found("fd00::1", options), Texts()) << "a single one is left";
}

// All ranks name rails alike, however each has met the others.
TEST(TcpRails, ThatAreNamedDoNotDependOnWhereTheRanksHaveMet) {
  for (const char* met : {"", "10.0.0.1", "fd00::1", "::1"}) {
    TcpTransportOptions options;
    options.rails = "eth0,eth1";
    EXPECT_EQ(found(met, options), kOverV4) << met;
    options.socket_family = "AF_INET6";
    EXPECT_EQ(found(met, options), kOverV6) << met;
  }
}

}  // namespace
}  // namespace trestle
