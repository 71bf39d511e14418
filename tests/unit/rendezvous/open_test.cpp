// The warning about an open rendezvous, which any process may join: its address is reachable from outside and there is
// no secret.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "support/log_lines.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace open_test {
namespace {

// The log of rank 0 when it should meet others at `host`. It fails at its listener, because the port is taken on
// loopback and so on every address.
std::string logged(const std::string& host, const std::string& secret, int32_t rank = 0) {
  const LogLines lines(LogLevel::kWarn);
  const Listener taken = taken_port();
  const std::atomic<bool> abort{rank != 0};
  BootstrapConfig config = loopback_config(2, rank, {});
  config.secret = secret;
  config.deadline_ns = monotonic_clock().now_ns();
  config.abort = &abort;
  config.communicator_id = host + ":" + std::to_string(taken.address.port());
  config.family = "AF_INET";
  const Joined joined = Bootstrap::join(config);
  EXPECT_FALSE(joined.ok());
  if (rank == 0) {
    EXPECT_TRUE(contains(joined.error().message, "cannot listen")) << joined.error().message;
  }
  return lines.text();
}

constexpr const char* kElsewhere = "192.0.2.1";  // of TEST-NET-1, RFC 5737

TEST(OpenRendezvous, IsWarnedOf) {
  const std::string text = logged(kElsewhere, "");
  for (const char* part : {"WARN", kElsewhere, "open", "no secret", "TRESTLE_SECRET"}) {
    EXPECT_TRUE(contains(text, part)) << "'" << part << "' in: " << text;
  }
}

TEST(OpenRendezvous, IsNotWhereASecretKeepsOthersOut) {
  EXPECT_FALSE(contains(logged(kElsewhere, "only we know"), "open"));
}

TEST(OpenRendezvous, IsNotWhereOthersCannotReachIt) {
  for (const char* host : {"127.0.0.1", "localhost"}) EXPECT_FALSE(contains(logged(host, ""), "open")) << host;
}

TEST(OpenRendezvous, IsSaidOnceForAJob) {
  EXPECT_FALSE(contains(logged(kElsewhere, "", 1), "open")) << "rank 0 has said so";
}

}  // namespace
}  // namespace open_test
}  // namespace trestle
