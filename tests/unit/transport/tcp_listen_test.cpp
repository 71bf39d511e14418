// Where a tcp endpoint listens: at the address where the ranks have met, if the user's choice allows it.
#include <gtest/gtest.h>

#include <algorithm>

#include "transport/tcp/tcp_rail.h"

namespace trestle {
namespace {

std::string filter_of(const std::string& interfaces, const std::string& family = "auto",
                      const std::string& met_at = "127.0.0.1") {
  TcpTransportOptions options;
  options.local_ip = met_at;
  options.socket_ifname = interfaces;
  options.socket_family = family;
  const Result<ListenOptions> at = listen_options({}, options);
  return at.ok() ? at.value().interface_filter : at.error().message;
}

// Of several interfaces that are allowed, another one may be better by itself, and be down on the other hosts.
TEST(TcpListen, IsWhereTheRanksHaveMetIfThatIsAllowed) {
  for (const char* allowed : {"", "^=nosuch", "lo,eth", "=lo", "^eth"}) EXPECT_EQ(filter_of(allowed), "=lo") << allowed;
  for (const char* other : {"^lo", "=nosuch", "eth"}) EXPECT_EQ(filter_of(other), other);
  EXPECT_EQ(filter_of("^=nosuch", "AF_INET"), "=lo");
  EXPECT_EQ(filter_of("^=nosuch", "AF_INET6"), "^=nosuch");
}

TEST(TcpListen, IsWhereTheRanksHaveMetOverIpv6) {
  const auto has = [](const Interface& one) { return format_host(one.address) == "[::1]"; };
  if (std::ranges::none_of(local_interfaces().value(), has)) GTEST_SKIP() << "this machine has no ::1";
  TcpTransportOptions options;
  options.local_ip = "::1";
  EXPECT_EQ(filter_of("", "auto", "::1"), "=lo");
  EXPECT_EQ(listen_options({}, options).value().family, AddressFamily::kIpv6);
}

TEST(TcpListen, IsAtTheRailThatIsNamed) {
  EndpointConfig config;
  config.interface = "nosuch";
  TcpTransportOptions options;
  options.local_ip = "127.0.0.1";
  EXPECT_EQ(listen_options(config, options).value().interface_filter, "=nosuch");
}

}  // namespace
}  // namespace trestle
