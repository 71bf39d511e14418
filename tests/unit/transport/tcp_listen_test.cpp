// Where a tcp endpoint listens: at the address where the ranks have met, if the user's choice allows it.
#include <gtest/gtest.h>

#include "transport/tcp/tcp_rail.h"

namespace trestle {
namespace {

std::string filter_of(const std::string& interfaces, const std::string& family = "auto") {
  TcpTransportOptions options;
  options.local_ip = "127.0.0.1";
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

TEST(TcpListen, IsAtTheRailThatIsNamed) {
  EndpointConfig config;
  config.interface = "nosuch";
  TcpTransportOptions options;
  options.local_ip = "127.0.0.1";
  EXPECT_EQ(listen_options(config, options).value().interface_filter, "=nosuch");
}

}  // namespace
}  // namespace trestle
