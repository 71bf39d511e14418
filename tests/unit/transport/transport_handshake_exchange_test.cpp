// The handshake over sockets: however the bytes arrive, it takes its own and no others, and says how it ended.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "transport/auth/handshake_exchange.h"

namespace trestle {
namespace {

constexpr int64_t kGenerousNs = 20'000'000'000;

Credentials credentials(int32_t rank, const std::string& secret = "open sesame") {
  const auto bytes = std::as_bytes(std::span(secret.data(), secret.size()));
  return {{bytes.begin(), bytes.end()}, job_id("job"), rank};
}

HandshakeExchange initiator(const std::string& secret = "open sesame") {
  return {Role::kInitiator, Purpose::kTcp, credentials(3, secret), 5};
}

HandshakeExchange acceptor() {
  return {Role::kAcceptor, Purpose::kTcp, credentials(5)};
}

// The two ends of a stream.
struct Stream {
  Stream() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    near = UniqueFd(fds[0]);
    far = UniqueFd(fds[1]);
  }
  UniqueFd near;
  UniqueFd far;
};

// All bytes that wait at `fd`.
std::vector<std::byte> received(const UniqueFd& fd) {
  std::vector<std::byte> all(1000);
  const Result<size_t> got = receive_bytes(fd.get(), all);
  all.resize(got.ok() && got.value() != kEndOfStream ? got.value() : 0);
  return all;
}

// Passes one byte on, if there is one.
bool pass_byte(const UniqueFd& from, const UniqueFd& to) {
  std::byte byte{};
  const Result<size_t> got = receive_bytes(from.get(), std::span(&byte, 1));
  if (!got.ok() || got.value() != 1) return false;
  EXPECT_TRUE(send_bytes(to.get(), std::span(&byte, 1)).ok());
  return true;
}

// Steps both ends of one stream until neither can go on. The first failure of each is kept.
struct Outcome {
  Result<bool> near = false;
  Result<bool> far = false;
};
Outcome converse(const Stream& stream, HandshakeExchange& near, HandshakeExchange& far) {
  Outcome outcome;
  for (int round = 0; round < 4; ++round) {
    if (outcome.near.ok()) outcome.near = near.step(stream.near.get());
    if (outcome.far.ok()) outcome.far = far.step(stream.far.get());
  }
  return outcome;
}

TEST(HandshakeExchange, EndsWhereverTheStreamIsCut) {
  const Stream here;
  const Stream there;
  HandshakeExchange one = initiator();
  HandshakeExchange two = acceptor();
  bool moved = true;
  for (int bytes = 0; moved; ++bytes) {
    ASSERT_LT(bytes, 1000);
    const Result<bool> first = one.step(here.near.get());
    const Result<bool> second = two.step(there.near.get());
    ASSERT_TRUE(first.ok() && second.ok());
    const bool forth = pass_byte(here.far, there.far);
    const bool back = pass_byte(there.far, here.far);
    moved = forth || back;
  }
  EXPECT_TRUE(one.step(here.near.get()).value());
  EXPECT_TRUE(two.step(there.near.get()).value());
  EXPECT_EQ(one.handshake().peer_rank(), 5);
  EXPECT_EQ(two.handshake().peer_rank(), 3);
  EXPECT_TRUE(one.heard() && two.heard());
}

TEST(HandshakeExchange, NamesTheEventThatItAwaits) {
  const Stream stream;
  HandshakeExchange one = initiator();
  EXPECT_EQ(one.awaited_event(), POLLOUT) << "its hello is not sent";
  EXPECT_FALSE(one.step(stream.near.get()).value());
  EXPECT_EQ(one.awaited_event(), POLLIN);
  EXPECT_FALSE(one.heard());
  EXPECT_EQ(acceptor().awaited_event(), POLLIN);
}

TEST(HandshakeExchange, LeavesWhatFollowsTheHandshake) {
  const Stream stream;
  HandshakeExchange one = initiator();
  HandshakeExchange two = acceptor();
  EXPECT_FALSE(one.step(stream.far.get()).value());
  EXPECT_FALSE(two.step(stream.near.get()).value());
  EXPECT_FALSE(one.step(stream.far.get()).value());
  EXPECT_FALSE(two.step(stream.near.get()).value());
  EXPECT_TRUE(one.step(stream.far.get()).value());
  const std::string data = "data behind the acknowledgement";
  ASSERT_TRUE(send_all_before(stream.far.get(), std::as_bytes(std::span(data)), {}).ok());
  EXPECT_TRUE(two.step(stream.near.get()).value());
  EXPECT_TRUE(two.step(stream.near.get()).value()) << "a step after the end";
  EXPECT_EQ(received(stream.near).size(), data.size());
}

// An acceptor's own bytes may follow its proof and be read before the acknowledgement is sent.
TEST(HandshakeExchange, StopsAtTheProof) {
  const Stream stream;
  HandshakeExchange one = initiator();
  HandshakeExchange two = acceptor();
  EXPECT_FALSE(one.step_to_proof(stream.far.get()).value());
  EXPECT_FALSE(two.step_to_proof(stream.near.get()).value());
  EXPECT_FALSE(one.step_to_proof(stream.far.get()).value());
  ASSERT_TRUE(two.step_to_proof(stream.near.get()).value());
  const std::byte verdict{7};
  ASSERT_TRUE(send_all_before(stream.near.get(), std::span(&verdict, 1), {}).ok());
  ASSERT_TRUE(one.step_to_proof(stream.far.get()).value());
  EXPECT_EQ(received(stream.far), std::vector<std::byte>{verdict});
  EXPECT_FALSE(two.step(stream.near.get()).value()) << "the acknowledgement is not sent";
  EXPECT_TRUE(one.step(stream.far.get()).value());
  EXPECT_TRUE(two.step(stream.near.get()).value());
}

TEST(HandshakeExchange, APeerThatClosesIsLost) {
  const Handshake honest(Role::kInitiator, Purpose::kTcp, credentials(3), 5);
  for (const size_t bytes : {size_t{0}, size_t{1}, kHelloBytes - 1, kHelloBytes}) {
    const Stream stream;
    HandshakeExchange exchange = acceptor();
    ASSERT_TRUE(send_all_before(stream.far.get(), honest.outgoing().first(bytes), {}).ok());
    EXPECT_FALSE(exchange.step(stream.near.get()).value()) << bytes;
    end_sending(stream.far.get());
    const Result<bool> ended = exchange.step(stream.near.get());
    ASSERT_FALSE(ended.ok()) << bytes;
    EXPECT_EQ(ended.error().code, Code::kRemoteError);
    EXPECT_EQ(ended.error().message, "the peer closed the connection during the handshake");
    EXPECT_TRUE(exchange.connection_lost());
    EXPECT_EQ(exchange.heard(), bytes > 0);
  }
}

TEST(HandshakeExchange, APeerThatIsGoneIsLost) {
  Stream stream;
  HandshakeExchange exchange = initiator();
  stream.far.reset();
  const Result<bool> ended = exchange.step(stream.near.get());
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::kRemoteError);
  EXPECT_TRUE(exchange.connection_lost());
}

TEST(HandshakeExchange, AWrongProofIsRefusedAndThePeerIsTold) {
  const Stream stream;
  HandshakeExchange one = initiator("open barley");
  HandshakeExchange two = acceptor();
  const Outcome outcome = converse(stream, one, two);
  ASSERT_FALSE(outcome.far.ok());
  EXPECT_NE(outcome.far.error().message.find("has another secret"), std::string::npos) << outcome.far.error().message;
  EXPECT_FALSE(two.connection_lost());
  EXPECT_TRUE(two.handshake().secret_differs());
  ASSERT_FALSE(outcome.near.ok());
  EXPECT_NE(outcome.near.error().message.find("refused"), std::string::npos) << outcome.near.error().message;
  EXPECT_FALSE(one.connection_lost());
  EXPECT_TRUE(one.handshake().secret_differs());
}

// Garbage behind a valid hello: it is taken for the proof, as far as a proof goes, and the rest stays unread.
TEST(HandshakeExchange, APeerThatSendsTooMuchIsRefused) {
  const Stream stream;
  HandshakeExchange exchange = acceptor();
  const Handshake honest(Role::kInitiator, Purpose::kTcp, credentials(3), 5);
  std::vector<std::byte> bytes(honest.outgoing().begin(), honest.outgoing().end());
  bytes.insert(bytes.end(), kProofBytes + 100, std::byte{9});
  ASSERT_TRUE(send_all_before(stream.far.get(), bytes, {}).ok());
  const Result<bool> refused = exchange.step(stream.near.get());
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(exchange.connection_lost()) << refused.error().message;
  EXPECT_EQ(received(stream.near).size(), 100u);
}

// Garbage as the last message: a proof that is right, and something else than the acknowledgement.
TEST(HandshakeExchange, GarbageInsteadOfTheAcknowledgementIsRefused) {
  const Stream stream;
  HandshakeExchange exchange = acceptor();
  Handshake honest(Role::kInitiator, Purpose::kTcp, credentials(3), 5);
  const auto say = [&] {
    ASSERT_TRUE(send_all_before(stream.far.get(), honest.outgoing(), {}).ok());
    honest.sent(honest.outgoing().size());
  };
  say();
  EXPECT_FALSE(exchange.step(stream.near.get()).value());
  ASSERT_TRUE(honest.received(received(stream.far)).ok());
  say();
  const std::vector<std::byte> garbage(kAcknowledgementBytes + 10, std::byte{0});
  ASSERT_TRUE(send_all_before(stream.far.get(), garbage, {}).ok());
  const Result<bool> refused = exchange.step(stream.near.get());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("acknowledgement"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(exchange.connection_lost());
  EXPECT_EQ(received(stream.near).size(), 10u);
}

TEST(HandshakeExchange, RunsToItsEndOrItsLimit) {
  const Stream stream;
  HandshakeExchange one = initiator();
  HandshakeExchange two = acceptor();
  const Status late = two.run_before(stream.near.get(), {monotonic_clock().now_ns() + 1'000'000, nullptr});
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, Code::kTimeout);
  const WaitLimit limit{monotonic_clock().now_ns() + kGenerousNs, nullptr};
  Status other;
  std::thread thread([&] { other = one.run_before(stream.far.get(), limit); });
  const Status own = two.run_before(stream.near.get(), limit);
  thread.join();
  EXPECT_TRUE(own.ok() && other.ok());
  EXPECT_TRUE(one.handshake().done() && two.handshake().done());
}

}  // namespace
}  // namespace trestle
