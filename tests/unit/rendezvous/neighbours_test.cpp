// A rank and its only neighbour, which the test plays. If one of them gives up during the handshake, the other must not
// count on it.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>

#include "base/log.h"
#include "control_mesh/control_link.h"
#include "control_mesh/control_mesh.h"
#include "rendezvous/neighbours.h"
#include "support/log_lines.h"
#include "support/no_descriptors.h"
#include "transport/auth/handshake_exchange.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace neighbours_test {
namespace {

using Joining = Result<std::unique_ptr<ControlMesh>>;

const Error kFailure{Code::kSystemError, "rank 7 has no memory"};

// Rank 0 of two on a separate thread. The test chooses the failure that its meeting place reports, and the error with
// which it is stopped.
class RankZero {
 public:
  explicit RankZero(const Listener& neighbour, Error failure = kFailure, std::function<Error()> on_abort = {},
                    const std::function<void(const SocketAddress&)>& before_it_runs = {},
                    const std::string& elsewhere = {})
      : failure_(std::move(failure)) {
    meeting_.secret.assign(32, std::byte{5});
    meeting_.listeners.push_back({taken_port()});
    meeting_.listeners.push_back({taken_port()});
    const std::string text = elsewhere + format_address(neighbour.address);
    meeting_.addresses = {text, text};
    meeting_.failure = [this]() -> Status {
      if (failed_.load()) return failure_;
      return {};
    };
    address_ = meeting_.listeners.back().listener.address;
    if (before_it_runs) before_it_runs(address_);
    thread_ = std::thread([this, on_abort] {
      BootstrapConfig config = loopback_config(2, 0, {});
      config.on_abort = on_abort;
      result_.emplace(connect_neighbours(config, meeting_, {config.deadline_ns, &stopped_}));
    });
  }
  static Credentials of_neighbour() { return {std::vector<std::byte>(32, std::byte{5}), JobId{}, 1}; }
  const SocketAddress& address() const { return address_; }
  void hear_of_failure() { failed_.store(true); }
  void stop() { stopped_.store(true); }
  Joining& result() {
    thread_.join();
    return *result_;
  }

 private:
  Meeting meeting_;
  SocketAddress address_;
  const Error failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stopped_{false};
  std::optional<Joining> result_;
  std::thread thread_;
};

void wait_readable(const UniqueFd& socket) {
  pollfd waiting{socket.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, -1), 1);
}

// The neighbour's end of the connection that rank 0 makes, after its proof.
UniqueFd accepted(const Listener& listener, const RankZero& rank) {
  wait_readable(listener.fd);
  UniqueFd socket = accept_connection(listener.fd.get()).value();
  HandshakeExchange exchange(Role::kAcceptor, Purpose::kControl, rank.of_neighbour(), 0);
  EXPECT_TRUE(exchange.run_before(socket.get(), {}).ok());
  return socket;
}

// The neighbour's connection to rank 0 up to the neighbour's own proof. Rank 0's proof is in the socket, unread.
UniqueFd proved_to(const RankZero& rank, Handshake& handshake) {
  UniqueFd socket = connect_before({&rank.address(), 1}, {}).value();
  std::array<std::byte, kHelloBytes> hello;
  EXPECT_TRUE(send_all_before(socket.get(), handshake.outgoing(), {}).ok());
  handshake.sent(handshake.outgoing().size());
  EXPECT_TRUE(receive_all_before(socket.get(), hello, {}).ok());
  EXPECT_TRUE(handshake.received(hello).ok());
  EXPECT_TRUE(send_all_before(socket.get(), handshake.outgoing(), {}).ok());
  handshake.sent(handshake.outgoing().size());
  wait_readable(socket);
  return socket;
}

// Returns the error that a neighbour which counts on rank 0 gets from it after `event`.
Error told_to_neighbour(RankZero& rank, const std::function<void()>& event) {
  Handshake handshake(Role::kInitiator, Purpose::kControl, rank.of_neighbour(), 0);
  UniqueFd in = proved_to(rank, handshake);
  event();
  EXPECT_FALSE(rank.result().ok());
  std::array<std::byte, kProofBytes> proof;
  EXPECT_TRUE(receive_all_before(in.get(), proof, {}).ok());
  EXPECT_TRUE(handshake.received(proof).ok());
  EXPECT_TRUE(send_all_before(in.get(), handshake.outgoing(), {}).ok());
  ControlLink link(0, std::move(in), kMaxSentence * 2);
  std::vector<ControlFrame> frames;
  std::string reason;
  while (link.read(frames, reason) == ControlLink::Reading::kOpen) {
  }
  if (frames.size() != 1 || frames.front().kind != ControlKind::kError) return {Code::kInternalError, "no failure"};
  return decode_failure_report(frames.front().payload, 2)->error;
}

// The neighbour has proved itself and leaves before it has read rank 0's proof. Rank 0 must not become ready with it.
TEST(NeighboursTest, ARankThatGivesUpBeforeItHasReadTheProofIsNotCountedOn) {
  const Listener listener = taken_port();
  RankZero rank(listener);
  const UniqueFd out = accepted(listener, rank);
  Handshake handshake(Role::kInitiator, Purpose::kControl, rank.of_neighbour(), 0);
  UniqueFd in = proved_to(rank, handshake);
  in.reset();
  rank.hear_of_failure();
  const Joining& result = rank.result();
  ASSERT_FALSE(result.ok()) << "ready, with a neighbour that is gone";
  EXPECT_EQ(result.error().message, kFailure.message);
}

// A neighbour says where it listens on each of its rails. One refuses, as an interface that is down does. One does not
// answer, as one that loses all packets: its queue is full. One takes the connection and says nothing.
TEST(NeighboursTest, ANeighbourIsReachedOverTheRailThatIsLeft) {
  const Listener listener = taken_port();
  std::string refuses;
  {
    const Listener closed = taken_port();
    refuses = format_address(closed.address);
  }
  const Listener silent = taken_port(0);
  const UniqueFd only = connect_before({&silent.address, 1}, {}).value();
  const Listener mute = taken_port();
  RankZero rank(listener, kFailure, {}, {},
                refuses + "," + format_address(silent.address) + "," + format_address(mute.address) + ",");
  const UniqueFd out = accepted(listener, rank);
  const UniqueFd in = connect_before({&rank.address(), 1}, {}).value();
  HandshakeExchange exchange(Role::kInitiator, Purpose::kControl, RankZero::of_neighbour(), 0);
  EXPECT_TRUE(exchange.run_before(in.get(), {}).ok());
  EXPECT_TRUE(rank.result().ok());
}

// As where every host has the same private address: another job listens there.
TEST(NeighboursTest, APlaceWithAnotherSecretIsNotTheNeighbours) {
  const Listener listener = taken_port();
  const Listener foreign = taken_port();
  RankZero rank(listener, kFailure, {}, {}, format_address(foreign.address) + ",");
  wait_readable(foreign.fd);
  const UniqueFd socket = accept_connection(foreign.fd.get()).value();
  HandshakeExchange stranger(Role::kAcceptor, Purpose::kControl, {std::vector<std::byte>(32, std::byte{6}), JobId{}, 1},
                             0);
  EXPECT_FALSE(stranger.run_before(socket.get(), {}).ok());
  const UniqueFd out = accepted(listener, rank);
  const UniqueFd in = connect_before({&rank.address(), 1}, {}).value();
  HandshakeExchange exchange(Role::kInitiator, Purpose::kControl, RankZero::of_neighbour(), 0);
  EXPECT_TRUE(exchange.run_before(in.get(), {}).ok());
  EXPECT_TRUE(rank.result().ok());
}

// The other direction: rank 0 gives up while the neighbour's acknowledgement is on its way.
TEST(NeighboursTest, WhoGivesUpSaysWhyToRanksThatMayCountOnIt) {
  const Listener listener = taken_port();
  RankZero rank(listener);
  const Error told = told_to_neighbour(rank, [&] { rank.hear_of_failure(); });
  EXPECT_EQ(told.message, kFailure.message);
}

TEST(NeighboursTest, WhoHearsOfAnothersAbortDoesNotCallItItsOwn) {
  const Listener listener = taken_port();
  const Error failure{Code::kAborted, "rank 7 aborted the communicator"};
  RankZero rank(listener, failure);
  const Error told = told_to_neighbour(rank, [&] { rank.hear_of_failure(); });
  EXPECT_EQ(told.message, failure.message);
}

// For example because the communicator that is split has failed.
TEST(NeighboursTest, WhoIsStoppedBecauseOfAnotherRankNamesThatOne) {
  const Listener listener = taken_port();
  RankZero rank(listener, kFailure, [] { return kFailure; });
  const Error told = told_to_neighbour(rank, [&] { rank.stop(); });
  EXPECT_EQ(told.code, kFailure.code);
  EXPECT_EQ(told.message, kFailure.message);
}

// The neighbour's connection waits in the listening queue until the rank has a descriptor for it.
TEST(NeighboursTest, WithoutDescriptorsARankSaysSoAndTakesItsNeighbourLater) {
  const std::string sentence = "rank 0 cannot accept a connection: accept: ";
  const Warnings warnings;
  const Listener listener = taken_port();
  RankZero rank(listener);
  const UniqueFd out = accepted(listener, rank);
  EarlySocket neighbour(AF_INET);
  NoDescriptorsLeft none;
  const UniqueFd in = neighbour.connect(rank.address().get(), rank.address().length);
  warnings.wait_for(sentence);
  none.leave_all();
  HandshakeExchange exchange(Role::kInitiator, Purpose::kControl, RankZero::of_neighbour(), 0);
  EXPECT_TRUE(exchange.run_before(in.get(), {}).ok());
  EXPECT_TRUE(rank.result().ok());
  EXPECT_EQ(warnings.count(sentence), 1u) << "once";
}

// All wait in the listening queue, the neighbour first. Its hello is there.
TEST(NeighboursTest, ACrowdBehindTheNeighbourDoesNotTakeItsPlace) {
  constexpr int kCrowd = 200;
  if (!can_open(kCrowd) || !can_queue(kCrowd)) GTEST_SKIP() << "the system allows fewer connections";
  const Listener listener = taken_port();
  UniqueFd in;
  HandshakeExchange exchange(Role::kInitiator, Purpose::kControl, RankZero::of_neighbour(), 0);
  std::vector<UniqueFd> crowd;
  RankZero rank(listener, kFailure, {}, [&](const SocketAddress& address) {
    in = connect_before({&address, 1}, {}).value();
    EXPECT_TRUE(exchange.step(in.get()).ok());
    for (int i = 0; i < kCrowd; ++i) crowd.push_back(connect_before({&address, 1}, {}).value());
  });
  const UniqueFd out = accepted(listener, rank);
  const Status done = exchange.run_before(in.get(), {});
  EXPECT_TRUE(done.ok()) << done.error().message;
  if (!done.ok()) rank.stop();
  EXPECT_EQ(rank.result().ok(), done.ok());
}

// The recorded bytes of one honest end of such a connection.
std::vector<std::byte> recorded(const RankZero& rank) {
  Handshake initiator(Role::kInitiator, Purpose::kControl, rank.of_neighbour(), 0);
  Credentials of_zero = rank.of_neighbour();
  of_zero.rank = 0;
  Handshake acceptor(Role::kAcceptor, Purpose::kControl, of_zero);
  std::vector<std::byte> said(initiator.outgoing().begin(), initiator.outgoing().end());
  initiator.sent(said.size());
  EXPECT_TRUE(acceptor.received(said).ok());
  EXPECT_TRUE(initiator.received(acceptor.outgoing()).ok());
  said.insert(said.end(), initiator.outgoing().begin(), initiator.outgoing().end());
  return said;
}

// Sends the bytes and waits until it is turned away.
void knock(const RankZero& rank, std::span<const std::byte> bytes) {
  const UniqueFd socket = connect_before({&rank.address(), 1}, {}).value();
  EXPECT_TRUE(send_all_before(socket.get(), bytes, {}).ok());
  std::array<std::byte, kHelloBytes> answer;
  Result<size_t> got = 0;
  while (got.ok() && got.value() != kEndOfStream) {
    wait_readable(socket);
    got = receive_bytes(socket.get(), answer);
  }
}

// Sends garbage and replays repeatedly while the neighbour is awaited.
TEST(NeighboursTest, StrangersAreTurnedAwayAndLoggedOncePerReason) {
  const LogLines lines(LogLevel::kWarn);  // other threads of this process may log too
  const Listener listener = taken_port();
  RankZero rank(listener);
  const std::vector<std::byte> garbage(200, std::byte{'G'});
  const std::vector<std::byte> replay = recorded(rank);
  for (int i = 0; i < 4; ++i) {
    knock(rank, garbage);
    knock(rank, replay);
  }
  const UniqueFd out = accepted(listener, rank);
  const UniqueFd in = connect_before({&rank.address(), 1}, {}).value();
  HandshakeExchange exchange(Role::kInitiator, Purpose::kControl, rank.of_neighbour(), 0);
  EXPECT_TRUE(exchange.run_before(in.get(), {}).ok());
  EXPECT_TRUE(rank.result().ok()) << "the job goes on";
  const std::string refused = "rank 0 refused a connection";
  EXPECT_EQ(lines.with({refused, "is not the beginning of a Trestle connection"}).size(), 1u);
  EXPECT_EQ(lines.with({refused, "has another secret"}).size(), 1u);
  EXPECT_EQ(lines.with({refused}).size(), 2u);
}

}  // namespace
}  // namespace neighbours_test
}  // namespace trestle
