// More ranks than a rendezvous server keeps strangers come at once. All of them are taken in.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <span>
#include <thread>

#include "rendezvous/meeting.h"
#include "rendezvous/message.h"
#include "rendezvous/server/server.h"
#include "support/no_descriptors.h"
#include "transport/auth/handshake_exchange.h"
#include "trestle/trestle.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace crowd_test {
namespace {

// Simulated ranks of one job, and the server that they come to. One thread drives them all.
class Crowd {
 public:
  explicit Crowd(int32_t ranks, int backlog = 512) : ranks_(ranks) {
    SocketAddress any = parse_address("127.0.0.1:1").value();
    any.set_port(0);
    listener_ = listen_tcp_at(any, backlog).value();
    address_ = listener_.address;
  }

  // Their connections wait in the listening queue.
  void connect(int32_t first, int32_t end) {
    for (int32_t rank = first; rank < end; ++rank) guests_.emplace_back(connected(), credentials(rank), rank);
  }
  void connect(int32_t rank, EarlySocket& early) {
    guests_.emplace_back(early.connect(address_.get(), address_.length), credentials(rank), rank);
  }
  void say_hello() {
    for (Guest& guest : guests_) EXPECT_TRUE(guest.exchange.step(guest.socket.get()).ok());
  }
  void start_server(const RendezvousOptions& wanted = {}) {
    RendezvousOptions options = wanted;
    options.credentials = credentials(0);
    options.handshake_timeout_ns = 600'000'000'000;  // one thread makes all handshakes, on a busy machine
    ASSERT_TRUE(start_rendezvous(std::move(listener_), options).ok());
  }
  // A guest's handshake to its end. The server has accepted all that connected before it.
  void authenticate(int32_t rank) {
    Guest& guest = this->guest(rank);
    const Status done = guest.exchange.run_before(guest.socket.get(), {});
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void ask(int32_t rank) { ask(guest(rank)); }
  // All guests ask to join. Returns how many of them the server sent on to their neighbours.
  int32_t join_all() {
    while (step_all() && !lost_) wait();
    return static_cast<int32_t>(std::count_if(guests_.begin(), guests_.end(), [](const Guest& g) { return g.joined; }));
  }
  // Strangers that have overheard the job's name and do not know the secret. The server has heard them all when it
  // answers the last one.
  void send_impostors(int count) {
    Credentials forged = credentials(1);
    forged.secret[0] ^= std::byte{1};
    for (int i = 0; i < count; ++i) {
      Guest& impostor = impostors_.emplace_back(connected(), forged, 1);
      (void)impostor.exchange.step(impostor.socket.get());
    }
    pollfd answer{impostors_.back().socket.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&answer, 1, -1), 1);
  }

 private:
  struct Guest {
    Guest(UniqueFd fd, const Credentials& credentials, int32_t rank)
        : socket(std::move(fd)), exchange(Role::kInitiator, Purpose::kRendezvous, credentials), rank(rank) {}
    UniqueFd socket;
    HandshakeExchange exchange;
    int32_t rank;
    bool asked = false;
    bool joined = false;
    bool over = false;
  };

  Credentials credentials(int32_t rank) const { return {secret_, job_id("a crowd"), rank}; }
  UniqueFd connected() const {
    UniqueFd socket = connect_before({&address_, 1}, {}).value();
    set_tcp_options(socket.get(), {});  // no request waits for the answer to an acknowledgement
    return socket;
  }
  Guest& guest(int32_t rank) {
    return *std::find_if(guests_.begin(), guests_.end(), [rank](const Guest& g) { return g.rank == rank; });
  }

  // False: all are answered.
  bool step_all() {
    bool under_way = false;
    for (Guest& guest : guests_) {
      if (!guest.over) step(guest);
      under_way = under_way || !guest.over;
    }
    return under_way;
  }
  void step(Guest& guest) {
    const Result<bool> done = guest.exchange.step(guest.socket.get());
    if (!done.ok()) return lose(guest, done.error());
    if (done.value() && !guest.asked) ask(guest);
    if (guest.asked && !guest.over) hear(guest);
  }
  void ask(Guest& guest) {
    JoinRequest request;
    request.version = TRESTLE_VERSION_CODE;
    request.nranks = ranks_;
    request.rank = guest.rank;
    request.address = "127.0.0.1:1";
    const std::string message = framed(encode(request));
    const Status sent = send_all_before(guest.socket.get(), std::as_bytes(std::span(message)), {});
    if (!sent.ok()) return lose(guest, sent.error());
    guest.asked = true;
  }
  // The answer is much shorter than what a socket holds.
  void hear(Guest& guest) {
    std::array<std::byte, 64 * 1024> bytes;
    const Result<size_t> got = receive_bytes(guest.socket.get(), bytes);
    if (!got.ok()) return lose(guest, got.error());
    if (got.value() == 0) return;
    if (got.value() == kEndOfStream) return lose(guest, {Code::kRemoteError, "the server has ended"});
    const std::string text(reinterpret_cast<const char*>(bytes.data()), got.value());
    const Result<JoinAnswer> answer = decode_join_answer(std::string_view(text).substr(4));
    guest.over = true;
    guest.joined = answer.ok() && answer.value().error.code == Code::kSuccess;
    EXPECT_TRUE(guest.joined) << (answer.ok() ? answer.value().error.message : answer.error().message);
    const std::string report = framed(encode(JoinReport{}));
    EXPECT_TRUE(send_all_before(guest.socket.get(), std::as_bytes(std::span(report)), {}).ok());
  }
  // The others would wait for it, so it ends them all.
  void lose(const Guest& lost, const Error& error) {
    if (!lost_) ADD_FAILURE() << "rank " << lost.rank << ": " << error.message;
    lost_ = true;
  }
  void wait() {
    std::vector<pollfd> fds;
    for (const Guest& guest : guests_) {
      if (!guest.over) fds.push_back({guest.socket.get(), guest.exchange.awaited_event(), 0});
    }
    EXPECT_GT(::poll(fds.data(), fds.size(), -1), 0);
  }

  const int32_t ranks_;
  const std::vector<std::byte> secret_ = std::vector<std::byte>(32, std::byte{7});
  Listener listener_;
  SocketAddress address_;
  std::list<Guest> guests_;
  std::list<Guest> impostors_;
  bool lost_ = false;
};

#define NEED_ROOM_FOR(connections) \
  if (!can_open(connections) || !can_queue(connections)) GTEST_SKIP() << "the system allows fewer connections"

constexpr int32_t kCrowd = 480;  // fits into the listening queue of a rendezvous

TEST(CrowdTest, RanksThatAllSaidHelloBeforeTheServerRuns) {
  NEED_ROOM_FOR(kCrowd);
  Crowd crowd(kCrowd);
  crowd.connect(0, kCrowd);
  crowd.say_hello();
  crowd.start_server();
  EXPECT_EQ(crowd.join_all(), kCrowd);
}

// All ranks but the last are slower than the server.
TEST(CrowdTest, RanksThatAreSilentWhenTheServerAcceptsThem) {
  NEED_ROOM_FOR(kCrowd);
  Crowd crowd(kCrowd);
  crowd.connect(0, kCrowd);
  crowd.start_server();
  crowd.authenticate(kCrowd - 1);
  EXPECT_EQ(crowd.join_all(), kCrowd);
}

TEST(CrowdTest, AsManyAsTheServerWasTold) {
  constexpr int32_t kMany = 1200;
  NEED_ROOM_FOR(kMany);
  RendezvousOptions options;
  options.ranks = kMany;
  Crowd crowd(kMany, kMany);
  crowd.connect(0, kMany);
  crowd.start_server(options);
  crowd.authenticate(kMany - 1);
  EXPECT_EQ(crowd.join_all(), kMany);
}

// The first rank that asks tells how many there are, before the others come.
TEST(CrowdTest, AsManyAsTheFirstRankTells) {
  constexpr int32_t kMany = 1200;
  NEED_ROOM_FOR(kMany);
  Crowd crowd(kMany, kMany);
  crowd.connect(0, 1);
  crowd.start_server();
  crowd.authenticate(0);
  crowd.ask(0);
  crowd.connect(1, kMany);
  crowd.authenticate(kMany - 1);
  EXPECT_EQ(crowd.join_all(), kMany);
}

// It has not asked to join yet.
TEST(CrowdTest, ARankThatHasProvedItselfMakesNoRoomForImpostors) {
  constexpr int kImpostors = 800;
  NEED_ROOM_FOR(kImpostors);
  Crowd crowd(2);
  crowd.connect(0, 2);
  crowd.start_server();
  crowd.authenticate(0);
  crowd.authenticate(1);
  crowd.send_impostors(kImpostors);
  EXPECT_EQ(crowd.join_all(), 2);
}

// Servers of earlier tests may end meanwhile and close their descriptors.
TEST(NoDescriptorsLeftTest, WhatOthersCloseMeanwhileLeavesNone) {
  const auto open = [] { return UniqueFd::open([] { return eventfd(0, EFD_CLOEXEC); }); };
  UniqueFd of_others = open();
  NoDescriptorsLeft none;
  of_others.reset();
  EXPECT_FALSE(open());
  none.leave_all();
  EXPECT_TRUE(open());
}

// The rank's connection waits in the listening queue until the server has a descriptor for it.
TEST(CrowdTest, AServerWithoutDescriptorsSaysSoAndTakesTheRankLater) {
  const std::string sentence = "the rendezvous cannot accept a connection: accept: ";
  const Warnings warnings;
  Crowd crowd(1);
  crowd.start_server();
  EarlySocket rank(AF_INET);
  NoDescriptorsLeft none;
  crowd.connect(0, rank);
  warnings.wait_for(sentence);
  none.leave_all();
  EXPECT_EQ(crowd.join_all(), 1);
  EXPECT_EQ(warnings.count(sentence), 1u) << "once";
}

// A server without room closes a connection and gives no reason.
TEST(CrowdTest, ARankThatWasDroppedComesAgain) {
  UniqueId id;
  id.job = job_id("a closed door");
  Listener door = taken_port();
  id.addresses = {door.address};
  std::vector<Joined> joined;
  std::thread ranks([&] { joined = join_all(configs_for(2, encode(id).value())); });
  for (int dropped = 0; dropped < 2; ++dropped) {
    pollfd knock{door.fd.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&knock, 1, -1), 1);
    ASSERT_TRUE(accept_connection(door.fd.get()).ok());
  }
  RendezvousOptions options;
  options.credentials = {{id.secret.begin(), id.secret.end()}, id.job, 0};
  ASSERT_TRUE(start_rendezvous(std::move(door), options).ok());
  ranks.join();
  EXPECT_EQ(all_of(std::move(joined)).size(), 2u);
}

// A rank without a secret, and its root, which the test plays.
class OpenDoor {
 public:
  OpenDoor() : door_(taken_port()), address_(format_address(door_->address)) {
    rank_ = std::thread([this] {
      BootstrapConfig config = loopback_config(2, 1, {});
      config.communicator_id = address_;
      joined_.emplace(Bootstrap::join(config));
    });
  }
  // The next connection of the rank, after the handshake.
  UniqueFd let_in() const {
    UniqueFd rank = accept_before(door_->fd.get(), {}).value();
    HandshakeExchange exchange(Role::kAcceptor, Purpose::kRendezvous, {{}, job_at(door_->address.port(), ""), 0});
    const Status done = exchange.run_before(rank.get(), {});
    EXPECT_TRUE(done.ok()) << done.error().message;
    return rank;
  }
  void remove() { door_.reset(); }
  // Why it did not join.
  Error error() {
    rank_.join();
    EXPECT_FALSE(joined_->ok());
    return joined_->error();
  }

 private:
  std::optional<Listener> door_;
  const std::string address_;
  std::optional<Joined> joined_;
  std::thread rank_;
};

// Nothing distinguishes it from a stranger before it has asked, so the server may drop it even after the handshake.
TEST(CrowdTest, ARankWithoutASecretThatWasDroppedComesAgain) {
  OpenDoor door;
  for (int dropped = 0; dropped < 2; ++dropped) door.let_in().reset();
  const UniqueFd rank = door.let_in();
  JoinAnswer answer;
  answer.error = {Code::kSystemError, "it was heard"};
  const std::string message = framed(encode(answer));
  EXPECT_TRUE(send_all_before(rank.get(), std::as_bytes(std::span(message)), {}).ok());
  EXPECT_EQ(door.error().message, "it was heard");
}

TEST(CrowdTest, ARankWithoutASecretSaysAtOnceThatItsRootIsGone) {
  OpenDoor door;
  UniqueFd rank = door.let_in();
  door.remove();
  rank.reset();
  EXPECT_TRUE(contains(door.error().message, "rank 0 ended or is lost")) << door.error().message;
}

}  // namespace
}  // namespace crowd_test
}  // namespace trestle
