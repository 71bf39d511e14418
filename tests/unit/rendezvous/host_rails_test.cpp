// Where a rank can be reached while the ranks meet: a listener on each rail, and the text that neighbours are told.
#include "rendezvous/host_rails.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "transport/rails/inventory.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace {

TEST(HostRails, OfLoopbackAreOneListener) {
  Listener first = taken_port();
  const std::string text = format_address(first.address);
  const std::vector<Listener> listeners = listen_on_rails(std::move(first), {"", "", "auto", {}, "127.0.0.1"});
  EXPECT_EQ(meeting_text(listeners), text);
  EXPECT_TRUE(host_rails({"", "", "auto", {}, "127.0.0.1"}).value().empty());
  EXPECT_TRUE(host_rails({"", "", "auto", {}, "192.0.2.1"}).value().empty()) << "no address of this host";
}

// Whatever rails this machine has, the ranks can meet on each of them.
TEST(HostRails, HaveAListenerEach) {
  const RailChoice choice = choose_rails(read_interfaces().value(), {}).value();
  for (const LocalRail& met : choice.rails) {
    const std::string ip = format_host(met.address);
    const HostRailsRequest request{"", "", "auto", {}, ip};
    const auto rails = host_rails(request).value();
    const auto listeners = listen_on_rails(listen_at(met, {}).value(), request);
    EXPECT_TRUE(is_at(listeners.front().address, ip));
    EXPECT_EQ(listeners.size(), std::max<size_t>(rails.size(), 1));
    const auto told = parse_meeting_text(meeting_text(listeners)).value();
    ASSERT_EQ(told.size(), listeners.size());
    for (size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], listeners[i].address);
  }
}

TEST(MeetingText, HasAsManyAddressesAsFit) {
  std::vector<Listener> listeners;
  for (int i = 0; i < 20; ++i) listeners.push_back(taken_port());
  const std::string text = meeting_text(listeners);
  EXPECT_LE(text.size(), kMostMeetingText);
  const auto told = parse_meeting_text(text).value();
  EXPECT_GE(told.size(), 10u);
  EXPECT_EQ(told.front(), listeners.front().address);
}

TEST(MeetingText, OfAStrangerIsRefused) {
  for (const char* const text :
       {"", ",", "127.0.0.1:5000,", ",127.0.0.1:5000", "127.0.0.1", "127.0.0.1:5000;127.0.0.1:5001"})
    EXPECT_FALSE(parse_meeting_text(text).ok()) << text;
  EXPECT_EQ(parse_meeting_text("127.0.0.1:5000,[::1]:6000").value().size(), 2u);
}

}  // namespace
}  // namespace trestle
