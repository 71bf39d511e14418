// Where a rank can be reached while the ranks meet: a listener on each rail, and the text that neighbours are told.
#include "rendezvous/host_rails.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/host_interfaces.h"
#include "transport/rails/inventory.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace host_rails_test {
namespace {

HostRailsRequest met(const std::string& at, const std::string& rails = "") {
  return {rails, "", "auto", {}, parse_host(at).value()};
}

TEST(HostRails, OfLoopbackAreOneListener) {
  Listener first = taken_port();
  const std::string text = format_address(first.address);
  const auto listeners = listen_on_rails(std::move(first), met("127.0.0.1"));
  EXPECT_EQ(meeting_text(listeners), text) << "not as a rail";
  EXPECT_TRUE(parse_meeting_text(text).value().rails.empty());
  const auto interfaces = read_interfaces().value();
  for (const char* none : {"127.0.0.1", "::1", "192.0.2.1", "2001:db8::1"})
    EXPECT_TRUE(host_rails(interfaces, met(none)).value().empty()) << none << " is of loopback, or not of this host";
}

// The interfaces of a host with both families, and where other ranks have reached it.
TEST(HostRails, AreThoseOfTheHostInTheFamilyInWhichItWasReached) {
  using Texts = std::vector<std::string>;
  const std::vector<HostInterface> host = {loopback(), card("eth0", "10.0.0.1/24 [fe80::1]/64 [fd00::1]/64"),
                                           card("eth1", "10.0.1.1/24 [fd00:1::1]/64"), card("eth2", "[fd00:2::1]/64")};
  const Texts v4 = {"eth0 10.0.0.1 10.0.0.0/24", "eth1 10.0.1.1 10.0.1.0/24", "eth2 [fd00:2::1] fd00:2::/64"};
  const Texts v6 = {"eth0 [fd00::1] fd00::/64", "eth1 [fd00:1::1] fd00:1::/64", v4[2]};
  const struct {
    const char* met_at;
    const char* rails;
    Texts expected;
  } kCases[] = {{"10.0.0.1", "", v4},
                {"::ffff:10.0.0.1", "", v4},
                {"fd00::1", "", v6},
                {"[fd00::1]", "", v6},
                {"fd00:2::1", "", v6},
                {"::1", "", {}},
                {"127.0.0.1", "", {}},
                {"fd00::9", "", {}},
                {"fd00::1", "eth1", {v6[0], v6[1]}},
                {"10.0.0.1", "eth1", {v4[0], v4[1]}},
                {"fd00:1::1", "eth1,eth2", {v6[1], v6[2]}}};
  for (const auto& c : kCases) {
    const auto rails = host_rails(host, met(c.met_at, c.rails));
    ASSERT_TRUE(rails.ok()) << c.met_at << ": " << rails.error().message;
    EXPECT_EQ(rails_text(rails.value()), c.expected) << c.met_at << ", rails '" << c.rails << "'";
  }
}

// Whatever rails this machine has, the ranks can meet on each of them.
TEST(HostRails, HaveAListenerEach) {
  const RailChoice choice = choose_rails(read_interfaces().value(), {}).value();
  for (const LocalRail& met : choice.rails) {
    const HostRailsRequest request{"", "", "auto", {}, met.address};
    const auto rails = host_rails(read_interfaces().value(), request).value();
    const auto listeners = listen_on_rails(listen_to_meet({&met.address, 1}, {}).value(), request);
    EXPECT_EQ(HostAddress(listeners.front().listener.address), met.address);
    const bool loopback = met.address.is_loopback();
    EXPECT_EQ(listeners.size(), std::max<size_t>(rails.size(), 1));
    const auto told = parse_meeting_text(meeting_text(listeners)).value();
    ASSERT_EQ(told.addresses.size(), listeners.size());
    EXPECT_EQ(told.rails.size(), loopback ? 0 : listeners.size());
    for (size_t i = 0; i < told.addresses.size(); ++i) {
      EXPECT_EQ(told.addresses[i], listeners[i].listener.address);
      EXPECT_TRUE(loopback || told.rails[i].fabric == listeners[i].fabric);
    }
  }
}

// Nothing says how other ranks reach this machine. Loopback is told only where there is nothing else.
TEST(HostRails, AreAllOfTheHostWhereNothingIsKnown) {
  const RailChoice choice = choose_rails(read_interfaces().value(), {}).value();
  for (const char* rails : {"", "nosuch0,nosuch1"}) {
    const HostRailsRequest request{rails, "", "auto", {}, {}};
    const auto listeners = listen_on_any_rail(request);
    ASSERT_TRUE(listeners.ok()) << listeners.error().message;
    ASSERT_EQ(listeners.value().size(), choice.rails.size());
    for (size_t i = 0; i < choice.rails.size(); ++i)
      EXPECT_EQ(HostAddress(listeners.value()[i].listener.address), choice.rails[i].address);
    EXPECT_EQ(why_only_here(listeners.value(), request).empty(), !choice.rails[0].address.is_loopback());
  }
  for (const LocalRail& rail : choice.rails) {
    const bool there = !rail.address.is_loopback();
    EXPECT_NE(listen_on_any_rail({"", "", "auto", {}, rail.address}).ok(), there) << "an interface has the address";
  }
}

TEST(HostRails, OfLoopbackSayWhy) {
  std::vector<RailListener> listeners;
  listeners.push_back({taken_port()});
  EXPECT_NE(why_only_here(listeners, {"", "lo", "auto", {}, {}}).find("TRESTLE_SOCKET_IFNAME 'lo' leaves it out") ==
                std::string::npos,
            read_interfaces().value().size() > 1);
  EXPECT_NE(why_only_here(listeners, {"", "", "auto", {}, {}}), "");
}

TEST(MeetingText, HasAsManyAddressesAsFit) {
  for (const int prefix : {0, 8}) {
    std::vector<RailListener> listeners;
    for (int i = 0; i < 40; ++i) {
      listeners.push_back({taken_port()});
      if (prefix == 0) continue;
      listeners.back().fabric = fabric_of(listeners.back().listener.address, prefix);
      listeners.back().fabric.place = i + 1;
    }
    const std::string text = meeting_text(listeners);
    EXPECT_LE(text.size(), kMostMeetingText);
    const auto told = parse_meeting_text(text).value();
    EXPECT_GE(told.addresses.size(), 20u);
    EXPECT_EQ(told.addresses.front(), listeners.front().listener.address);
    EXPECT_EQ(told.rails.size(), prefix == 0 ? 0 : kMostRails);
  }
}

TEST(MeetingText, SaysWhichPlacesAreRails) {
  const auto told = parse_meeting_text("10.9.0.1:5,10.0.1.1:6/24,[fd00::1]:7/64#2").value();
  ASSERT_EQ(told.addresses.size(), 3u);
  ASSERT_EQ(told.rails.size(), 2u);
  EXPECT_EQ(told.rails[0].address, told.addresses[1]);
  EXPECT_EQ(told.rails[0].fabric.text(), "10.0.1.0/24");
  EXPECT_EQ(told.rails[1].fabric.text(), "fd00::/64#2");
}

TEST(MeetingText, OfAStrangerIsRefused) {
  for (const char* const text :
       {"", ",", "127.0.0.1:5000,", ",127.0.0.1:5000", "127.0.0.1", "127.0.0.1:5000;127.0.0.1:5001", "/24",
        "10.0.0.1:5/", "10.0.0.1:5/33", "10.0.0.1:5/24#0", "10.0.0.1:5/24,10.0.0.2:5/24", "10.0.0.1:5/24/24"})
    EXPECT_FALSE(parse_meeting_text(text).ok()) << text;
  EXPECT_EQ(parse_meeting_text("127.0.0.1:5000,[::1]:6000").value().addresses.size(), 2u);
}

}  // namespace
}  // namespace host_rails_test
}  // namespace trestle
