// Strangers that connect to the listening port of a tcp endpoint are turned away, and the job continues.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <string>

#include "base/log.h"
#include "conformance/transport_conformance.h"
#include "support/no_descriptors.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace tcp_strangers_test {
namespace {

class TcpStrangers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Status usable = find_transport("tcp").value()->probe(); !usable.ok())
      GTEST_SKIP() << usable.error().message;
  }

  // A connection to the port of `to`.
  static UniqueFd connect_to(Transport& to) {
    const SocketAddress address = parse_address(to.address()).value();
    return connect_before({&address, 1}, {}).value();
  }
  static void say(const UniqueFd& fd, std::span<const std::byte> data) {
    ASSERT_TRUE(send_all_before(fd.get(), data, {}).ok());
  }
  static void say(const UniqueFd& fd, const std::string& text) {
    say(fd, std::as_bytes(std::span(text.data(), text.size())));
  }
  // Drives until the endpoint has closed the connection. Returns the bytes that it sent before.
  static std::vector<std::byte> until_closed(Endpoints& endpoints, const UniqueFd& fd) {
    std::vector<std::byte> all;
    bool closed = false;
    EXPECT_TRUE(endpoints.drive([&] {
      std::array<std::byte, 256> buffer;
      const auto got = receive_bytes(fd.get(), buffer);
      closed = !got.ok() || got.value() == kEndOfStream;
      if (!closed) all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(got.value()));
      return closed;
    }));
    return all;
  }
  static void expect_traffic(Endpoints& endpoints, uint64_t number) {
    for (const size_t bytes : {size_t{8}, size_t{100'000}}) {
      Outgoing out(1, {number, 0, 0, bytes}, bytes);
      Incoming in(0, {number, 0, 0, bytes}, bytes);
      post(endpoints, 0, out);
      post(endpoints, 1, in);
      ASSERT_TRUE(endpoints.drive([&] { return in.done() && out.done(); }));
      EXPECT_TRUE(in.right());
    }
  }
};

TEST_F(TcpStrangers, AreKeptOutAndTheJobGoesOn) {
  Endpoints endpoints("tcp", 2);
  const UniqueFd silent = connect_to(endpoints[1]);  // never sends anything
  const UniqueFd half = connect_to(endpoints[1]);
  say(half, "TRESTLE\n");
  const UniqueFd web = connect_to(endpoints[1]);
  say(web, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(until_closed(endpoints, web).empty()) << "a stranger is told nothing";
  expect_traffic(endpoints, 1);
  const UniqueFd late = connect_to(endpoints[1]);
  say(late, std::string(10'000, '\xff'));
  (void)until_closed(endpoints, late);
  expect_traffic(endpoints, 2);
}

// The lines of the log that contain `part`, during the life of this object.
class LogOf {
 public:
  LogOf() {
    LogSettings settings;
    settings.file = path_;
    EXPECT_TRUE(configure_log(settings).ok());
  }
  ~LogOf() {
    EXPECT_TRUE(configure_log({}).ok());
    std::remove(path_.c_str());
  }
  int lines_with(const std::string& part) const {
    std::ifstream file(path_);
    int count = 0;
    for (std::string line; std::getline(file, line);) count += line.find(part) != std::string::npos ? 1 : 0;
    return count;
  }

 private:
  const std::string path_ = testing::TempDir() + "trestle-strangers-" + std::to_string(getpid()) + ".log";
};

TEST_F(TcpStrangers, HalfAHandshakeThatGoesAwayIsLoggedOnce) {
  const std::string job = fresh_job();
  const EndpointConfig config = test_config(0, 2, job);
  auto endpoint = std::move(find_transport("tcp").value()->create(test_config(1, 2, job), test_options())).value();
  ASSERT_TRUE(endpoint->set_peers({"", endpoint->address()}, config.peer_names).ok());
  Handshake handshake(Role::kInitiator, Purpose::kTcp, {config.secret, job_id(job), 0}, 1);
  const std::vector<std::byte> hello(handshake.outgoing().begin(), handshake.outgoing().end());
  const LogOf log;
  for (const size_t bytes : {size_t{0}, size_t{3}, size_t{50}, hello.size(), hello.size()}) {
    const UniqueFd stranger = connect_to(*endpoint);
    say(stranger, std::span(hello).first(bytes));
    end_sending(stranger.get());
    ASSERT_TRUE(drive_until(
        [&]() -> Status {
          TRY(endpoint->progress());
          return {};
        },
        [&] {
          std::array<std::byte, 256> buffer;
          const auto got = receive_bytes(stranger.get(), buffer);
          return !got.ok() || got.value() == kEndOfStream;
        }));
    EXPECT_EQ(log.lines_with("refused a connection from 127.0.0.1"), bytes == 0 ? 0 : 1) << bytes;
  }
}

// Both ranks of a pair connect at the same time, many times. One of the two connections is given up, and that is not
// logged as a stranger.
TEST_F(TcpStrangers, TheConnectionThatAPeerGivesUpIsNone) {
  const LogOf log;
  for (uint64_t round = 0; round < 50; ++round) {
    Endpoints endpoints("tcp", 2);
    Outgoing there(1, {round, 0, 0, 0}, 8);
    Outgoing back(0, {round, 0, 1, 0}, 8);
    Incoming from_there(1, {round, 0, 1, 0}, 8);
    Incoming from_here(0, {round, 0, 0, 0}, 8);
    post(endpoints, 0, there);
    post(endpoints, 1, back);
    post(endpoints, 0, from_there);
    post(endpoints, 1, from_here);
    ASSERT_TRUE(endpoints.drive([&] { return there.done() && back.done() && from_there.done() && from_here.done(); }));
    ASSERT_TRUE(endpoints.drive_rounds(10));
  }
  EXPECT_EQ(log.lines_with("refused"), 0);
}

TEST_F(TcpStrangers, AReplayedConversationIsRefused) {
  const std::string job = fresh_job();
  const EndpointConfig config = test_config(0, 2, job);
  const Credentials credentials{config.secret, job_id(job), 0};
  Endpoints others("tcp", 2);  // another job, so that it also refuses the recorded hello because of the job
  auto endpoint = std::move(find_transport("tcp").value()->create(test_config(1, 2, job), test_options())).value();
  ASSERT_TRUE(endpoint->set_peers({"", endpoint->address()}, config.peer_names).ok());
  const auto step = [&]() -> Status {
    TRY(endpoint->progress());
    return {};
  };

  // A rank of the job connects, and its bytes are recorded.
  std::vector<std::byte> recorded;
  Handshake handshake(Role::kInitiator, Purpose::kTcp, credentials, 1);
  const UniqueFd honest = connect_to(*endpoint);
  ASSERT_TRUE(drive_until(
      [&]() -> Status {
        TRY(step());
        const auto out = handshake.outgoing();
        if (!out.empty()) {
          recorded.insert(recorded.end(), out.begin(), out.end());
          TRY(send_all_before(honest.get(), out, {}));
          handshake.sent(out.size());
        }
        std::array<std::byte, kHelloBytes> buffer;
        if (handshake.wanted() == 0) return {};
        const size_t got = TRY(receive_bytes(honest.get(), std::span(buffer).first(handshake.wanted())));
        if (got == 0) return {};
        return handshake.received(std::span(buffer).first(got));
      },
      [&] { return handshake.done(); }));

  const UniqueFd thief = connect_to(*endpoint);
  say(thief, recorded);
  size_t told = 0;
  ASSERT_TRUE(drive_until(step, [&] {
    std::array<std::byte, 256> buffer;
    const auto got = receive_bytes(thief.get(), buffer);
    if (!got.ok() || got.value() == kEndOfStream) return true;
    told += got.value();
    return false;
  }));
  EXPECT_EQ(told, kHelloBytes + kProofBytes) << "its hello and the refusal, never a welcome";
  const UniqueFd stranger = connect_to(others[0]);
  say(stranger, recorded);
  EXPECT_EQ(until_closed(others, stranger).size(), kHelloBytes) << "the refusal for another job";
}

TEST_F(TcpStrangers, AreBoundedInNumber) {
  Endpoints endpoints("tcp", 2);
  std::deque<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(connect_to(endpoints[1]));
    ASSERT_TRUE(endpoints.drive_rounds(2));
  }
  expect_traffic(endpoints, 1);
  (void)until_closed(endpoints, silent.front());  // the oldest connection was dropped
}

// Rank 1 of two, and the handshake of a rank 0 with it, which the test makes.
struct Visit {
  explicit Visit(const std::string& job)
      : config(test_config(0, 2, job)),
        endpoint(std::move(find_transport("tcp").value()->create(test_config(1, 2, job), test_options())).value()),
        exchange(Role::kInitiator, Purpose::kTcp, {config.secret, job_id(job), 0}, 1) {
    EXPECT_TRUE(endpoint->set_peers({"", endpoint->address()}, config.peer_names).ok());
  }
  void expect_proof(const UniqueFd& rank) {
    bool proved = false;
    EXPECT_TRUE(drive_until(
        [&]() -> Status {
          TRY(endpoint->progress());
          proved = TRY(exchange.step_to_proof(rank.get()));
          return {};
        },
        [&] { return proved; }));
  }
  const EndpointConfig config;
  const std::unique_ptr<Transport> endpoint;
  HandshakeExchange exchange;
};

// All wait in the listening queue, the rank first. Its hello is there.
TEST_F(TcpStrangers, ACrowdBehindARankDoesNotTakeItsPlace) {
  Visit visit(fresh_job());
  const UniqueFd rank = connect_to(*visit.endpoint);
  ASSERT_TRUE(visit.exchange.step(rank.get()).ok());
  std::deque<UniqueFd> crowd;
  for (int i = 0; i < 300; ++i) crowd.push_back(connect_to(*visit.endpoint));
  visit.expect_proof(rank);
}

// The rank's connection waits in the listening queue until the endpoint has a descriptor for it.
TEST_F(TcpStrangers, WithoutDescriptorsARankIsTakenLater) {
  const std::string sentence = "tcp: accept: ";
  const Warnings warnings;
  Visit visit(fresh_job());
  const SocketAddress address = parse_address(visit.endpoint->address()).value();
  EarlySocket early(address.storage.ss_family);
  NoDescriptorsLeft none;
  const UniqueFd rank = early.connect(address.get(), address.length);
  ASSERT_TRUE(drive_until(
      [&]() -> Status {
        TRY(visit.endpoint->progress());
        return {};
      },
      [&] { return warnings.count(sentence) != 0; }));
  none.leave_all();
  visit.expect_proof(rank);
  EXPECT_EQ(warnings.count(sentence), 1u) << "once";
}

TEST_F(TcpStrangers, AnotherSecretIsSaidOnTheSideThatConnects) {
  const std::string job = fresh_job();
  EndpointConfig config = test_config(0, 2, job);
  auto right = std::move(find_transport("tcp").value()->create(test_config(1, 2, job), test_options())).value();
  config.secret.assign(32, std::byte{1});
  auto wrong = std::move(find_transport("tcp").value()->create(config, test_options())).value();
  const std::vector<std::string> addresses = {wrong->address(), right->address()};
  ASSERT_TRUE(right->set_peers(addresses, config.peer_names).ok());
  ASSERT_TRUE(wrong->set_peers(addresses, config.peer_names).ok());
  Outgoing out(1, {1, 0, 0, 0}, 8);
  ASSERT_TRUE(wrong->post_send(out.request).value());
  Error error{Code::kSuccess, ""};
  ASSERT_TRUE(drive_until(
      [&]() -> Status {
        TRY(right->progress());  // must not be affected
        auto moved = wrong->progress();
        if (!moved.ok()) error = moved.error();
        return {};
      },
      [&] { return error.code != Code::kSuccess; }));
  EXPECT_NE(error.message.find("secret"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(test_name(1)), std::string::npos) << error.message;
}

TEST_F(TcpStrangers, BadConfigurationsAreSaid) {
  const auto create = find_transport("tcp").value()->create;
  EndpointConfig config = test_config(0, 2, fresh_job());
  config.interface = "nosuch0";
  EXPECT_NE(create(config, test_options()).error().message.find("lo (127.0.0.1)"), std::string::npos);
  config = test_config(0, 2, fresh_job());
  TransportOptions options = test_options();
  options.tcp.socket_family = "AF_PIGEON";
  EXPECT_EQ(create(config, options).error().code, Code::kInvalidArgument);
  options = test_options();
  options.tcp.port_range = "9-x";
  EXPECT_EQ(create(config, options).error().code, Code::kInvalidArgument);
  auto first = create(config, test_options());
  const std::string port = first.value()->address().substr(first.value()->address().rfind(':') + 1);
  options.tcp.port_range = port + "-" + port;
  EXPECT_NE(create(config, options).error().message.find("in use"), std::string::npos);
}

TEST_F(TcpStrangers, Ipv6WorksAsWell) {
  SocketAddress here = parse_address("[::1]:1").value();
  here.set_port(0);
  if (!listen_tcp_at(here).ok()) GTEST_SKIP() << "this machine has no ::1";
  const std::string job = fresh_job();
  std::vector<std::unique_ptr<Transport>> both;
  std::vector<std::string> addresses;
  for (const int32_t rank : {0, 1}) {
    TransportOptions options = test_options();
    options.tcp.socket_family = "AF_INET6";
    both.push_back(std::move(find_transport("tcp").value()->create(test_config(rank, 2, job), options)).value());
    addresses.push_back(both.back()->address());
  }
  EXPECT_EQ(addresses[0].substr(0, 5), "[::1]");
  for (auto& endpoint : both) ASSERT_TRUE(endpoint->set_peers(addresses, {test_name(0), test_name(1)}).ok());
  Outgoing out(1, {1, 0, 0, 0}, 50'000);
  Incoming in(0, {1, 0, 0, 0}, 50'000);
  ASSERT_TRUE(both[0]->post_send(out.request).value());
  ASSERT_TRUE(both[1]->post_recv(in.request).value());
  ASSERT_TRUE(drive_until(
      [&]() -> Status {
        for (auto& endpoint : both) TRY(endpoint->progress());
        return {};
      },
      [&] { return in.done() && out.done(); }));
  EXPECT_TRUE(in.right());
}

}  // namespace
}  // namespace tcp_strangers_test
}  // namespace trestle
