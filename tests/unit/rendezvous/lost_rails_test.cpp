// Rails that are lost while the ranks of a communicator connect to each other, and until their first exchange is over.
// Networks of loopback (127.0.0.0/24, 127.0.1.0/24) are the rails.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <random>

#include "control_mesh/control_link.h"
#include "control_mesh/dissemination.h"
#include "control_mesh/move_record.h"
#include "rendezvous/mesh_rails.h"
#include "rendezvous/neighbours.h"
#include "transport/auth/handshake_exchange.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace lost_rails_test {
namespace {

constexpr size_t kRails = 2;

RailListener listener_of(int32_t rank, size_t rail) {
  const std::string ip = "127.0." + std::to_string(rail) + "." + std::to_string(rank + 1);
  SocketAddress any = parse_address(ip + ":1").value();
  any.set_port(0);
  Listener made = listen_tcp_at(any).value();
  const Fabric fabric = fabric_of(made.address, 24);
  return {std::move(made), "lo", fabric};
}

std::vector<RailListener> listeners_of(int32_t rank) {
  std::vector<RailListener> listeners;
  for (size_t rail = 0; rail < kRails; ++rail) listeners.push_back(listener_of(rank, rail));
  return listeners;
}

using Joining = Result<std::unique_ptr<ControlMesh>>;

std::vector<std::byte> secret() {
  return std::vector<std::byte>(32, std::byte{5});
}

// Nothing: the connection was closed.
std::optional<MoveRecord> read_record(const UniqueFd& socket) {
  std::string bytes(kMoveRecordBytes, '\0');
  const bool whole = receive_all_before(socket.get(), std::as_writable_bytes(std::span(bytes)), {}).ok();
  return whole ? decode_move_record(bytes) : std::nullopt;
}

// The connection is taken, if it is still wanted.
void answer(const UniqueFd& socket, uint32_t number) {
  MoveRecord record;
  record.kind = MoveRecord::Kind::kTaken;
  record.number = number;
  const std::string bytes = encode(record);
  (void)send_all_before(socket.get(), std::as_bytes(std::span(bytes)), {});
}

// Whether the mesh says goodbye over the connection. The mesh ends.
bool carries(ControlMesh& mesh, UniqueFd socket) {
  mesh.close(0);
  ControlLink link(0, std::move(socket), kMaxSentence * 2);
  std::vector<ControlFrame> frames;
  std::string reason;
  while (link.read(frames, reason) == ControlLink::Reading::kOpen) {
  }
  return std::ranges::any_of(frames, [](const ControlFrame& one) { return one.kind == ControlKind::kBye; });
}

// Rank 0 of two connects on a thread of its own. The test plays rank 1.
class Zero {
 public:
  Zero() {
    meeting_.secret = secret();
    meeting_.listeners = listeners_of(0);
    const std::string text = meeting_text(one_);
    meeting_.addresses = {text, text};
    for (const RailListener& at : meeting_.listeners) addresses_.push_back(at.listener.address);
    thread_ = std::thread([this] {
      const BootstrapConfig config = loopback_config(2, 0, {});
      result_.emplace(connect_neighbours(config, meeting_, {config.deadline_ns, nullptr}));
      over_.store(true);
    });
  }
  ~Zero() {
    if (thread_.joinable()) thread_.join();
  }
  Joining& result() {
    thread_.join();
    return *result_;
  }
  // Rank 1 listens at these.
  RailListener& one(size_t rail) { return one_[rail]; }

  // A connection that rank 0 makes, to whichever rail it tries, after the handshake. It may have given up earlier ones
  // if the test was slow.
  UniqueFd accept_from(Purpose purpose) {
    while (true) {
      Purpose made_for = purpose;
      UniqueFd socket = accept_any(made_for);
      if (socket && made_for == purpose) return socket;
    }
  }
  // Accepts a connection of either purpose. Empty: rank 0 has given it up, or makes none for a moment.
  UniqueFd accept_any(Purpose& purpose) {
    UniqueFd socket = accept_silent();
    return socket && shake_hands(socket, purpose) ? std::move(socket) : UniqueFd();
  }
  // A connection that rank 0 makes, before the handshake. Empty: it makes none for a moment.
  UniqueFd accept_silent() {
    std::array<pollfd, kRails> waiting = {pollfd{one_[0].listener.fd.get(), POLLIN, 0},
                                          pollfd{one_[1].listener.fd.get(), POLLIN, 0}};
    ::poll(waiting.data(), waiting.size(), 20);
    return accept_connection(waiting[waiting[0].revents != 0 ? 0 : 1].fd).value();
  }
  static bool shake_hands(const UniqueFd& socket, Purpose& purpose) {
    HandshakeExchange exchange(Role::kAcceptor, Purpose::kControl, credentials(), 0, Purpose::kControlMove);
    if (!exchange.run_before(socket.get(), {}).ok()) return false;
    purpose = exchange.handshake().purpose();
    return true;
  }
  UniqueFd connect_to(Purpose purpose, size_t rail = 0) {
    UniqueFd socket = connect_before({&addresses_[rail], 1}, {}).value();
    HandshakeExchange exchange(Role::kInitiator, purpose, credentials(), 0);
    const Status done = exchange.run_before(socket.get(), {});
    EXPECT_TRUE(done.ok()) << done.error().message;
    return socket;
  }
  // Takes whatever connection rank 0 asks with, until it has all.
  void take_all() {
    std::vector<UniqueFd> taken;
    while (!over_.load()) {
      Purpose purpose{};
      UniqueFd socket = accept_any(purpose);
      if (!socket || purpose != Purpose::kControlMove) continue;
      if (const auto asked = read_record(socket)) answer(socket, asked->number);
      taken.push_back(std::move(socket));
    }
  }
  // Asks over a new connection, and returns the answer; nothing: the connection was closed.
  std::optional<MoveRecord> ask(const MoveRecord& record, UniqueFd* socket = nullptr) {
    UniqueFd made = connect_to(Purpose::kControlMove, 1);
    const std::string bytes = encode(record);
    EXPECT_TRUE(send_all_before(made.get(), std::as_bytes(std::span(bytes)), {}).ok());
    const auto answer = read_record(made);
    if (socket != nullptr) *socket = std::move(made);
    return answer;
  }

 private:
  static Credentials credentials() { return {secret(), JobId{}, 1}; }
  std::vector<RailListener> one_ = listeners_of(1);
  Meeting meeting_;
  std::vector<SocketAddress> addresses_;
  std::optional<Joining> result_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

MoveRecord asking(bool out, uint32_t number) {
  MoveRecord record;
  record.out = out;
  record.number = number;
  return record;
}

// Rank 1 counts on a connection whose acknowledgement was lost with its rail: rank 0 has never had it.
TEST(LostRails, AConnectionThatNeverCameIsMadeAnew) {
  Zero zero;
  const UniqueFd out = zero.accept_from(Purpose::kControl);
  UniqueFd in;
  const auto taken = zero.ask(asking(true, 3), &in);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->kind, MoveRecord::Kind::kTaken);
  EXPECT_EQ(taken->number, 3u);
  EXPECT_EQ(taken->came, 0u);
  Joining& result = zero.result();
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(carries(*result.value(), std::move(in)));
}

// Both connections exist at rank 1, which is in its first exchange already. It asks for each, and again when it has
// given up an attempt.
TEST(LostRails, AConnectionThatIsThereIsReplaced) {
  Zero zero;
  const UniqueFd out = zero.accept_from(Purpose::kControl);
  UniqueFd last;
  ASSERT_TRUE(zero.ask(asking(false, 1)));
  ASSERT_TRUE(zero.ask(asking(false, 4), &last));
  EXPECT_FALSE(zero.ask(asking(false, 4))) << "an old attempt that comes late";
  const UniqueFd in = zero.connect_to(Purpose::kControl);
  Joining& result = zero.result();
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(carries(*result.value(), std::move(last)));
}

TEST(LostRails, ALinkThatDoesNotExistIsNotGiven) {
  Zero zero;
  const UniqueFd out = zero.accept_from(Purpose::kControl);
  MoveRecord other = asking(true, 1);
  other.step = 7;
  EXPECT_FALSE(zero.ask(other));
  MoveRecord frames = asking(true, 1);
  frames.came = 1;
  EXPECT_FALSE(zero.ask(frames)) << "rank 0 has sent nothing";
  EXPECT_FALSE(zero.ask({MoveRecord::Kind::kTaken, true, 0, 1, 0}));
  const UniqueFd in = zero.connect_to(Purpose::kControl);
  EXPECT_TRUE(zero.result().ok());
}

// What rank 0 has made ends while it waits for rank 1's connection.
TEST(LostRails, AConnectionThatEndsIsMadeAnew) {
  Zero zero;
  zero.accept_from(Purpose::kControl).reset();
  const UniqueFd lost = zero.accept_from(Purpose::kControlMove);
  const auto asked = read_record(lost);
  EXPECT_TRUE(!asked || *asked == asking(true, asked->number));
  const UniqueFd in = zero.connect_to(Purpose::kControl);
  zero.take_all();
  Joining& result = zero.result();
  ASSERT_TRUE(result.ok()) << result.error().message;
}

// The answer for a connection that rank 1 has made, where rank 0 connects now. Both ask: that of the lower rank counts.
// The answer to rank 1's, while rank 0 awaits one. kTaken: the test was so slow that rank 0 gave up its own. The first
// connection of rank 0 stays without an answer until rank 0 asks: with all connections it would not look at them again.
std::optional<MoveRecord> answer_to_the_higher_rank() {
  Zero zero;
  zero.connect_to(Purpose::kControl).reset();
  UniqueFd first;
  while (!first) first = zero.accept_silent();
  UniqueFd out;
  UniqueFd again;
  while (!again) {
    Purpose purpose{};
    UniqueFd socket = zero.accept_any(purpose);
    if (socket) (purpose == Purpose::kControl ? out : again) = std::move(socket);
  }
  Purpose purpose{};
  Zero::shake_hands(first, purpose);  // rank 0 may have given it up
  const auto asked = read_record(again);
  EXPECT_TRUE(!asked || *asked == asking(false, asked->number));
  UniqueFd own;
  const auto reply = zero.ask(asking(true, 9), &own);
  if (asked) answer(again, asked->number);
  zero.take_all();
  EXPECT_TRUE(zero.result().ok());
  return reply;
}

TEST(LostRails, TheLowerRanksConnectionCounts) {
  bool yielded = false;
  for (int attempt = 0; attempt < 10 && !yielded; ++attempt) {
    const auto reply = answer_to_the_higher_rank();
    yielded = reply && reply->kind == MoveRecord::Kind::kYield;
  }
  EXPECT_TRUE(yielded);
}

TEST(LostRails, ARankThatIsGoneIsNotAwaited) {
  Zero zero;
  UniqueFd out = zero.accept_from(Purpose::kControl);
  for (size_t rail = 0; rail < kRails; ++rail) zero.one(rail).listener.fd.reset();
  out.reset();
  Joining& result = zero.result();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message.find("rank 1 died: its connection ended without a goodbye ("), 0u)
      << result.error().message;
}

// Ends all connections over a rail, whoever has them: an end of each has an address there.
void cut(size_t rail) {
  const std::string network = "127.0." + std::to_string(rail) + ".";
  DIR* const listing = opendir("/proc/self/fd");
  ASSERT_NE(listing, nullptr);
  while (const dirent* entry = readdir(listing)) {
    const int fd = std::atoi(entry->d_name);
    int listens = 0;
    socklen_t length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens != 0) continue;
    const SocketAddress here = local_address(fd);
    if (here.length != 0 && here.family() == AddressFamily::kIpv4 && format_host(here).starts_with(network))
      shutdown(fd, SHUT_RDWR);
  }
  closedir(listing);
}

// The ranks of one communicator, each on a thread of its own.
class Job {
 public:
  explicit Job(int32_t ranks) : ranks_(ranks) {
    std::vector<std::vector<RailListener>> listeners;
    std::vector<std::string> texts;
    for (int32_t r = 0; r < ranks; ++r) texts.push_back(meeting_text(listeners.emplace_back(listeners_of(r))));
    for (int32_t r = 0; r < ranks; ++r) {
      Meeting meeting;
      meeting.secret = secret();
      meeting.listeners = std::move(listeners[static_cast<size_t>(r)]);
      for (const int32_t peer : mesh_neighbours(r, ranks))
        meeting.addresses.push_back(texts[static_cast<size_t>(peer)]);
      meetings_.push_back(std::move(meeting));
      joined_.emplace_back(Error{Code::kInternalError, "did not run"});
    }
  }
  // The rank joins, and exchanges as a communicator does that is being made.
  void start(int32_t rank) {
    threads_.emplace_back([this, rank] { run(rank); });
  }
  // Of all ranks together.
  int32_t steps() const { return steps_.load(); }
  bool over() const { return done_.load() == ranks_; }
  void wait() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void run(int32_t rank) {
    BootstrapConfig config = loopback_config(ranks_, rank, {});
    config.heartbeat_ns = 60 * kSecond;
    Joined& joined = joined_[static_cast<size_t>(rank)];
    joined = Bootstrap::join_at(config, std::move(meetings_[static_cast<size_t>(rank)]));
    EXPECT_TRUE(joined.ok()) << "rank " << rank << ": " << joined.error().message;
    for (int round = 0; joined.ok() && round < kRounds; ++round) {
      ++steps_;
      exchange(*joined.value(), round);
    }
    ++done_;
    // The others may need frames that were lost.
    while (joined.ok() && !over()) {
      EXPECT_TRUE(joined.value()->heard().ok());
      pollfd waiting{joined.value()->event_fd(), POLLIN, 0};
      ::poll(&waiting, 1, 5);
    }
  }
  void exchange(Bootstrap& bootstrap, int round) {
    const auto blobs = bootstrap.all_gather(std::to_string(round * 100 + bootstrap.rank()), bootstrap.deadline_ns());
    ASSERT_TRUE(blobs.ok()) << "rank " << bootstrap.rank() << ": " << blobs.error().message;
    for (int32_t r = 0; r < ranks_; ++r)
      EXPECT_EQ(blobs.value()[static_cast<size_t>(r)], std::to_string(round * 100 + r));
  }

  static constexpr int kRounds = 20;
  const int32_t ranks_;
  std::vector<Meeting> meetings_;
  std::vector<Joined> joined_;  // live until all ranks are done
  std::vector<std::thread> threads_;
  std::atomic<int32_t> steps_{0};
  std::atomic<int32_t> done_{0};
};

class LostRailsTest : public testing::TestWithParam<int32_t> {};

TEST_P(LostRailsTest, DoNotEndTheCreationWheneverTheyAreLost) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::minstd_rand random(seed);
    Job job(GetParam());
    std::vector<int32_t> order(static_cast<size_t>(GetParam()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    const auto cut_some = [&](uint32_t most) {
      for (uint32_t cuts = random() % most; cuts > 0 && !job.over(); --cuts) {
        for (uint32_t pause = random() % 100; pause > 0; --pause) std::this_thread::yield();
        cut(random() % kRails);
      }
    };
    // Those that have begun connect to each other, and wait for the others.
    for (const int32_t rank : order) {
      job.start(rank);
      cut_some(6);
    }
    // Then at any step of the others.
    for (int cuts = 0; cuts < 12 && !job.over(); ++cuts) {
      const auto until = job.steps() + static_cast<int32_t>(random() % static_cast<uint32_t>(2 * GetParam()));
      while (job.steps() < until && !job.over()) std::this_thread::yield();
      cut(random() % kRails);
    }
    job.wait();
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LostRailsTest, testing::Values(2, 3, 5, 8));

TEST(MeshRails, LeadToOtherHostsOverSeveralRails) {
  const Credentials credentials{secret(), JobId{}, 0};
  const std::string same = meeting_text(listeners_of(0));
  const std::string other = meeting_text(listeners_of(1));
  const std::string one_rail = other.substr(0, other.find(','));
  EXPECT_EQ(rail_ways(listeners_of(0), other).size(), kRails);
  for (const std::string& text : {same, one_rail, std::string("nonsense"), std::string("10.0.0.1:5,10.0.1.1:6")})
    EXPECT_TRUE(rail_ways(listeners_of(0), text).empty()) << text;
  const MeshRails rails(credentials, listeners_of(0), {{1, other}, {2, same}, {4, one_rail}, {5, "nonsense"}});
  EXPECT_EQ(rails.count(), kRails);
  EXPECT_EQ(rails.rails_to(1), (std::vector<size_t>{0, 1}));
  for (const int32_t rank : {2, 3, 4, 5}) EXPECT_TRUE(rails.rails_to(rank).empty()) << rank;
  EXPECT_EQ(rails.places(1).size(), kRails);
  EXPECT_EQ(rails.places(4).size(), 1u);
  EXPECT_TRUE(rails.places(5).empty());
}

}  // namespace
}  // namespace lost_rails_test
}  // namespace trestle
