// Ranks that must not become a communicator, and strangers that must not prevent one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "rendezvous/server/board.h"
#include "transport/auth/handshake.h"
#include "transport/socket/socket.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace refusal_test {
namespace {

void expect_all(const std::vector<Joined>& results, Code code, const std::vector<std::string>& parts) {
  for (const Joined& joined : results) {
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.error().code, code) << joined.error().message;
    for (const std::string& part : parts)
      EXPECT_TRUE(contains(joined.error().message, part)) << "'" << part << "' in: " << joined.error().message;
  }
}

TEST(RefusalTest, ArgumentsAreChecked) {
  const UniqueIdBytes id = loopback_id();
  expect_all(join_all({loopback_config(0, 0, id), loopback_config(-3, 0, id)}), Code::kInvalidArgument,
             {"number of ranks"});
  expect_all(join_all({loopback_config(2, 2, id), loopback_config(2, -1, id)}), Code::kInvalidArgument,
             {"out of range"});
  const int32_t most = std::numeric_limits<int32_t>::max();
  expect_all(join_all({loopback_config(most, 0, id)}), Code::kInvalidArgument, {"number of ranks", "at most"});
}

// The rendezvous allocates nothing of the size that the first rank claims, even if that rank does not check it itself.
TEST(RefusalTest, TheRendezvousBelievesNoHugeNumberOfRanks) {
  RendezvousBoard board;
  JoinRequest request;
  request.nranks = std::numeric_limits<int32_t>::max();
  board.arrive(request, "127.0.0.1:1");
  ASSERT_TRUE(board.failed());
  EXPECT_EQ(board.answer_for(0).error.code, Code::kInvalidArgument);
  EXPECT_TRUE(contains(board.answer_for(0).error.message, "2147483647 ranks, more than"));
}

// Of ranks by number: the host ("": not known), and whether other hosts cannot reach the rank.
std::string told(const std::vector<std::pair<std::string, bool>>& ranks) {
  RendezvousBoard board;
  for (size_t r = 0; r < ranks.size(); ++r) {
    JoinRequest request;
    request.nranks = static_cast<int32_t>(ranks.size());
    request.rank = static_cast<int32_t>(r);
    request.address = "127.0.0.1:5000";
    request.network = ranks[r].first;
    if (ranks[r].second) request.only_here = "eth0: down";
    board.arrive(request, "");
  }
  return board.answer_for(0).error.message;
}

TEST(RefusalTest, AnAddressOfLoopbackIsToldOnItsOwnHostOnly) {
  EXPECT_EQ(told({{"a", true}, {"a", true}, {"a", true}}), "");
  EXPECT_EQ(told({{"a", false}, {"b", false}, {"a", false}}), "");
  EXPECT_EQ(told({{"", true}, {"b", false}}), "") << "nobody knows";
  const auto names = [](int cut_off, int other) {
    return "rank " + std::to_string(cut_off) + " can be reached from its own host only, at 127.0.0.1:5000, and rank " +
           std::to_string(other) +
           " is on another one (eth0: down); TRESTLE_SOCKET_IFNAME names the interface over which other hosts reach it";
  };
  EXPECT_EQ(told({{"a", true}, {"b", false}}), names(0, 1));
  EXPECT_EQ(told({{"a", false}, {"b", true}}), names(1, 0));
  EXPECT_EQ(told({{"a", false}, {"a", true}, {"b", false}}), names(1, 2));
  EXPECT_EQ(told({{"a", false}, {"b", false}, {"b", true}}), names(2, 0));
  EXPECT_EQ(told({{"", false}, {"a", true}, {"a", true}, {"b", true}}), names(1, 3));
}

TEST(RefusalTest, DamagedIdIsRefused) {
  UniqueIdBytes id = loopback_id();
  id[70] ^= std::byte{1};
  expect_all(join_all({loopback_config(1, 0, id)}), Code::kInvalidArgument, {"checksum"});
}

TEST(RefusalTest, DuplicateRankFailsEverybody) {
  const UniqueIdBytes id = loopback_id();
  expect_all(join_all({loopback_config(3, 0, id), loopback_config(3, 1, id), loopback_config(3, 1, id)}),
             Code::kInvalidArgument, {"two processes joined as rank 1 of 3"});
}

TEST(RefusalTest, DifferentNumbersOfRanksFailEverybody) {
  const UniqueIdBytes id = loopback_id();
  const auto results = join_all({loopback_config(3, 0, id), loopback_config(3, 1, id), loopback_config(4, 2, id)});
  expect_all(results, Code::kInvalidArgument, {"there are ", " ranks, rank "});
  EXPECT_EQ(results[0].error().message, results[1].error().message);
  EXPECT_EQ(results[0].error().message, results[2].error().message);
}

TEST(RefusalTest, MissingRanksAreNamed) {
  const auto results = join_until_told("ranks 1, 2 and 4 did not come", [](int64_t deadline_ns) {
    const UniqueIdBytes id = loopback_id();
    std::vector<BootstrapConfig> configs = {loopback_config(5, 0, id), loopback_config(5, 3, id)};
    configs[0].deadline_ns = deadline_ns;
    return configs;
  });
  expect_all(results, Code::kTimeout, {"ranks 1, 2 and 4 did not come", "2 of 5 did"});
}

TEST(RefusalTest, AbortEndsTheWait) {
  std::atomic<bool> abort{false};
  auto config = loopback_config(2, 0, loopback_id());
  config.abort = &abort;
  std::thread other([&] { abort.store(true); });
  expect_all(join_all({config}), Code::kAborted, {"abort"});
  other.join();
}

TEST(RefusalTest, WrongSecretInTheIdIsRefusedAtOnce) {
  const UniqueIdBytes right = loopback_id();
  UniqueId forged = decode(right).value();
  forged.secret[0] ^= std::byte{1};
  expect_all(join_all({loopback_config(2, 1, encode(forged).value())}), Code::kRemoteError, {"another secret"});
  auto ranks = all_of(join_all(configs_for(2, right)));  // the real ranks are not affected
  EXPECT_EQ(ranks.size(), 2u);
}

TEST(RefusalTest, AnotherJobsIdIsRefused) {
  UniqueId other = decode(loopback_id()).value();
  other.job[0] ^= std::byte{1};
  expect_all(join_all({loopback_config(2, 1, encode(other).value())}), Code::kRemoteError, {"another job"});
}

// Turns away all that connect, as a root of another version of Trestle does.
class RootOfAnotherVersion {
 public:
  RootOfAnotherVersion() : door_(taken_port()), thread_([this] { turn_away(); }) {}
  ~RootOfAnotherVersion() {
    over_ = true;
    thread_.join();
  }
  std::string address() const { return format_address(door_.address); }

 private:
  void turn_away() {
    while (!over_) {
      const Result<UniqueFd> rank = accept_before(door_.fd.get(), {kNever, &over_});
      if (!rank.ok()) continue;
      Handshake handshake(Role::kInitiator, Purpose::kRendezvous, {});
      std::vector<std::byte> hello(handshake.outgoing().begin(), handshake.outgoing().end());
      hello[8] ^= std::byte{64};  // the version
      EXPECT_TRUE(send_all_before(rank.value().get(), hello, {}).ok());
      std::array<std::byte, kHelloBytes> theirs;
      (void)receive_all_before(rank.value().get(), theirs, {});  // what lies there unread would reset the connection
    }
  }

  const Listener door_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(RefusalTest, AnotherVersionIsSaid) {
  const RootOfAnotherVersion root;
  UniqueId id;
  id.addresses = {parse_address(root.address()).value()};
  auto named = loopback_config(2, 1, {});
  named.communicator_id = root.address();
  for (const BootstrapConfig& config : {loopback_config(2, 1, encode(id).value()), named}) {
    expect_all(join_all({config}), Code::kRemoteError,
               {"another version of Trestle", "the peer speaks version " + std::to_string(kHandshakeVersion ^ 64),
                "all ranks need the same version"});
  }
}

// Joins with another secret than the root's. The root stays until this rank has its answer.
Joined join_with_wrong_secret(int64_t deadline_ns) {
  const std::string at = format_address(taken_port().address);
  std::atomic<bool> stop{false};
  auto root = loopback_config(2, 0, {});
  auto stranger = loopback_config(2, 1, {});
  root.communicator_id = stranger.communicator_id = at;
  root.secret = "one";
  stranger.secret = "two";
  stranger.deadline_ns = std::min(stranger.deadline_ns, deadline_ns);
  root.abort = &stop;
  std::thread rank0([&] { expect_all(join_all({root}), Code::kAborted, {}); });
  Joined joined = Bootstrap::join(stranger);
  stop.store(true);
  rank0.join();
  return joined;
}

void expect_refused(const Joined& joined, Code code) {
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, code) << joined.error().message;
  for (const char* part : {"another secret", "TRESTLE_SECRET"}) {
    EXPECT_TRUE(contains(joined.error().message, part)) << "'" << part << "' in: " << joined.error().message;
  }
}

TEST(RefusalTest, WrongSecretVariableIsSaid) {
  expect_refused(join_with_wrong_secret(std::numeric_limits<int64_t>::max()), Code::kRemoteError);
}

// The rank also says so if its deadline passes before it gives up. The root may be slow, and a deadline that passes
// before any answer of the root says nothing.
TEST(RefusalTest, WrongSecretVariableIsSaidAtTheDeadline) {
  for (int64_t wait_ns = kSecond / 4;; wait_ns *= 2) {
    const Joined joined = join_with_wrong_secret(monotonic_clock().now_ns() + wait_ns);
    ASSERT_FALSE(joined.ok());
    if (!contains(joined.error().message, "another secret") && wait_ns < 16 * kSecond) continue;
    expect_refused(joined, Code::kTimeout);
    return;
  }
}

TEST(RefusalTest, FullPortRangeIsSaid) {
  const Listener taken = taken_port();
  const uint16_t port = taken.address.port();
  auto config = loopback_config(1, 0, {});
  config.port_range = {port, port};
  config.family = "AF_INET";
  const auto id = make_unique_id(config, 0);
  ASSERT_FALSE(id.ok());
  const std::string needs = "TRESTLE_PORT_RANGE needs 1 port at each interface for each rank of this host, and 1 more";
  for (const std::string& part : {std::to_string(port), needs})
    EXPECT_TRUE(contains(id.error().message, part)) << "'" << part << "' in: " << id.error().message;
  config.id = loopback_id();
  expect_all(join_all({config}), Code::kSystemError, {std::to_string(port), needs});
}

TEST(RefusalTest, TakenPortAndWayOutAreSaidBeforeAShortDeadline) {
  const Listener taken = taken_port();
  auto config = loopback_config(2, 0, {});
  config.communicator_id = format_address(taken.address);
  config.deadline_ns = monotonic_clock().now_ns() + kSecond / 10;
  const Joined joined = Bootstrap::join(config);
  ASSERT_FALSE(joined.ok());
  for (const std::string& part : {format_address(taken.address), std::string("in use"), std::string("TRESTLE_COMM_ID")})
    EXPECT_TRUE(contains(joined.error().message, part)) << "'" << part << "' in: " << joined.error().message;
}

// Garbage, half a handshake, a silent connection, a recorded conversation, before and while real ranks come.
TEST(RefusalTest, StrangersDoNotDisturb) {
  const UniqueIdBytes id = loopback_id();
  const UniqueId plain = decode(id).value();
  const SocketAddress root = plain.addresses.front();
  std::vector<UniqueFd> strangers;
  const auto connect = [&] {
    Result<UniqueFd> socket = connect_before(std::span(&root, 1), {});
    ASSERT_TRUE(socket.ok());
    strangers.push_back(std::move(socket).value());
  };
  const auto say = [&](std::span<const std::byte> data) {
    ASSERT_TRUE(send_all_before(strangers.back().get(), data, {}).ok());
  };
  connect();  // silent
  connect();
  const std::string garbage(10000, 'G');
  (void)send_bytes(strangers.back().get(), std::as_bytes(std::span(garbage)));
  Handshake recorded(Role::kInitiator, Purpose::kRendezvous, {{}, plain.job, 1});
  const std::vector<std::byte> hello(recorded.outgoing().begin(), recorded.outgoing().end());
  connect();
  say(std::span(hello).first(20));  // half a hello
  connect();
  say(hello);  // a hello and nothing more
  connect();
  std::vector<std::byte> replay = hello;
  replay.insert(replay.end(), kProofBytes, std::byte{0});
  (void)send_bytes(strangers.back().get(), replay);
  const int silent = can_open(1000) ? 900 : 300;
  for (int i = 0; i < silent; ++i) connect();  // more than may be open at once before a handshake
  auto ranks = all_of(join_all(configs_for(4, id)));
  ASSERT_EQ(ranks.size(), 4u);
  on_each_rank(ranks,
               [](Bootstrap& rank) { EXPECT_TRUE(rank.barrier(monotonic_clock().now_ns() + 120 * kSecond).ok()); });
}

TEST(RefusalTest, ARankThatGoesAwayIsNotWaitedFor) {
  const UniqueIdBytes id = loopback_id();
  std::atomic<bool> abort{false};
  auto leaver = loopback_config(3, 1, id);
  leaver.abort = &abort;
  std::vector<Joined> stayed;
  std::thread stayer([&] { stayed = join_all({loopback_config(3, 0, id)}); });
  std::thread left([&] { join_all({leaver}); });
  // Before or after it has arrived: the third rank hears the reason in both cases.
  abort.store(true);
  left.join();
  auto third = loopback_config(3, 2, id);
  third.deadline_ns = monotonic_clock().now_ns() + kSecond;
  const auto late = join_all({third});
  stayer.join();
  ASSERT_FALSE(stayed[0].ok());
  ASSERT_FALSE(late[0].ok());
  EXPECT_TRUE(contains(stayed[0].error().message, "rank 1")) << stayed[0].error().message;
}

}  // namespace
}  // namespace refusal_test
}  // namespace trestle
