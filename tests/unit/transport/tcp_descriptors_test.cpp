// A tcp endpoint that may connect with many ranks makes room for the connections.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

namespace trestle {
namespace {

constexpr int32_t kRanks = 400;

rlim_t soft_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// The limit of a child in which rank 0 of so many gets the addresses of its peers; 0: it did not get that far.
rlim_t limit_with_peers(Transport& endpoint) {
  const rlimit low{100, 4 * kRanks};
  if (setrlimit(RLIMIT_NOFILE, &low) != 0) return 0;
  const std::vector<std::string> addresses(kRanks, endpoint.address());
  return endpoint.set_peers(addresses, std::vector<std::string>(kRanks)).ok() ? soft_limit() : 0;
}

TEST(TcpDescriptors, FitForAllPeers) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < 4 * kRanks) GTEST_SKIP() << "the hard limit is lower";
  EndpointConfig config;
  config.ranks = kRanks;
  config.job = "many descriptors";
  TcpTransportOptions options;
  options.socket_ifname = "=lo";
  const pid_t pid = fork();
  if (pid == 0) {
    const auto endpoint = make_tcp_transport(config, options);
    _exit(endpoint.ok() && limit_with_peers(*endpoint.value()) >= 2 * (kRanks - 1) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
}

}  // namespace
}  // namespace trestle
