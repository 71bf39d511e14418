// Ranks of two jobs, and ranks that come again, at one rendezvous at a named place or in one directory.
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/log.h"
#include "rendezvous/meeting.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/server/board.h"
#include "rendezvous/server/server.h"
#include "unit/rendezvous/ghost.h"

namespace trestle {
namespace two_jobs_test {
namespace {

constexpr int64_t kPatienceNs = 30 * kSecond;  // until a rank that is told nothing gives up; more than a test takes

// Processes that have nothing to do with each other, or with this one.
const std::vector<uint64_t> kProcess = {101};
const std::vector<uint64_t> kAnother = {202};

// The rendezvous of a job at a port, in this process.
class Place {
 public:
  Place() {
    Listener door = taken_port();
    at_ = door.address;
    RendezvousOptions options;
    options.credentials = credentials(0);
    options.way_out = "take another port";
    auto held = start_rendezvous(std::move(door), options);
    EXPECT_TRUE(held.ok());
    hold_ = std::move(held).value();
  }
  const SocketAddress& at() const { return at_; }
  // A rank that has come, of two ranks.
  Ghost come(int32_t rank, const std::vector<uint64_t>& lineage) const {
    Ghost ghost(at_, credentials(rank), 2);
    EXPECT_TRUE(ghost.authenticate().ok());
    ghost.ask(lineage, kPatienceNs);
    return ghost;
  }

 private:
  Credentials credentials(int32_t rank) const { return {{}, job_at(at_.port(), ""), rank}; }
  SocketAddress at_;
  RendezvousHeld hold_;
};

constexpr const char* kTwice = "two processes joined as rank ";

// No rank 0 has come, because the one of this process has failed before, or asks later.
TEST(TwoJobs, ARankZeroThatIsAGuestIsOfAnotherJob) {
  const Place place;
  Ghost other = place.come(1, kProcess);
  Ghost guest = place.come(0, kAnother);
  for (Ghost* told : {&other, &guest}) {
    const Error error = told->hear().error;
    EXPECT_TRUE(contains(error.message, std::string(kTwice) + "0 of 2: " + own_rank_name(0) +
                                            ", which holds the rendezvous, and " + guest.name()))
        << error.message;
  }
}

// One process waits for two communicators when another job comes.
TEST(TwoJobs, AreToldToAllThatWait) {
  const Place place;
  Ghost first = place.come(1, kProcess);
  Ghost second = place.come(1, kProcess);
  Ghost stranger = place.come(1, kAnother);
  for (Ghost* told : {&stranger, &first, &second}) {
    const Error error = told->hear().error;
    EXPECT_TRUE(contains(error.message, std::string(kTwice) + "1 of 2")) << error.message;
  }
}

// A process may be another rank in another communicator of its job.
TEST(TwoJobs, AProcessUnderAnotherNumberIsNoStranger) {
  RendezvousBoard board;
  JoinRequest request;
  request.nranks = 2;
  request.lineage = kProcess;
  board.arrive(request, "");
  request.rank = 1;
  request.lineage = kAnother;
  board.arrive(request, "");
  ASSERT_TRUE(board.complete());
  for (const int32_t rank : {0, 1}) {
    request.rank = rank;
    for (const auto& there : {kProcess, kAnother}) {
      request.lineage = there;
      EXPECT_FALSE(board.has_another(request)) << rank;
      request.lineage = {7, there.front()};
      EXPECT_FALSE(board.has_another(request)) << "a child of it";
    }
    request.lineage = {303};
    EXPECT_TRUE(board.has_another(request)) << rank;
  }
}

// A rank that has given up with a reason is told this reason no more, also as another process.
TEST(TwoJobs, WhoHasGivenUpComesAgain) {
  const Place place;
  Ghost gone = place.come(1, kProcess);
  gone.report({Code::kAborted, "its user has stopped it"});
  EXPECT_FALSE(gone.hear().error.message.empty()) << "the connection ends when the rendezvous knows";
  Ghost again = place.come(1, kAnother);
  Ghost zero = place.come(0, process_lineage());
  for (Ghost* met : {&again, &zero}) EXPECT_EQ(met->hear().error.message, "");
}

// Rank 0 fails before it has asked at the rendezvous of its own process.
TEST(TwoJobs, ARankZeroThatCannotListenTellsThoseThatWait) {
  const Listener taken = taken_port();
  std::vector<BootstrapConfig> configs = configs_for(2, {});
  const std::string place = format_address(taken_port().address);  // the port is free again
  for (BootstrapConfig& config : configs) {
    config.communicator_id = place;
    config.deadline_ns = monotonic_clock().now_ns() + kPatienceNs;
  }
  configs[0].port_range = {taken.address.port(), taken.address.port()};
  const std::vector<Joined> joined = join_all(configs);
  for (const Joined& one : joined) {
    ASSERT_FALSE(one.ok());
    EXPECT_EQ(one.error().code, Code::kSystemError) << one.error().message;
    EXPECT_TRUE(contains(one.error().message, "TRESTLE_PORT_RANGE")) << one.error().message;
  }
  EXPECT_TRUE(contains(joined[1].error().message, own_rank_name(0) + " gave up: ")) << joined[1].error().message;
}

// Another process of this job holds the rendezvous, and ends: before it has read what rank 0 asks, or behind that.
TEST(TwoJobs, ARankZeroWhoseHostEndsHoldsTheRendezvousItself) {
  for (const bool reads : {false, true}) {
    std::optional<Listener> door = taken_port();
    const SocketAddress at = door->address;
    std::vector<BootstrapConfig> configs = configs_for(2, {});
    for (BootstrapConfig& config : configs) {
      config.communicator_id = format_address(at);
      config.deadline_ns = monotonic_clock().now_ns() + kPatienceNs;
    }
    std::optional<Joined> zero;
    std::thread rank([&] { zero.emplace(Bootstrap::join(configs[0])); });
    {
      const UniqueFd host = accept_before(door->fd.get(), {}).value();
      HandshakeExchange exchange(Role::kAcceptor, Purpose::kRendezvous, {{}, job_at(at.port(), ""), 0});
      EXPECT_TRUE(exchange.run_before(host.get(), {}).ok());
      std::byte asked{};
      if (reads) {
        EXPECT_TRUE(receive_all_before(host.get(), {&asked, 1}, {}).ok());
      }
      door.reset();
    }
    const Joined one = Bootstrap::join(configs[1]);
    rank.join();
    EXPECT_TRUE(zero->ok()) << zero->error().message;
    EXPECT_TRUE(one.ok()) << one.error().message;
  }
}

// What is logged, at INFO.
class Logged {
 public:
  Logged() { EXPECT_TRUE(configure_log({LogLevel::kInfo, kAllSubsystems, path_}).ok()); }
  ~Logged() { std::filesystem::remove(path_); }
  std::string text() const {
    EXPECT_TRUE(configure_log({LogLevel::kNone, 0, ""}).ok());
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

 private:
  const std::string path_ = ::testing::TempDir() + "trestle-two-jobs-log-" + std::to_string(getpid());
};

TEST(TwoJobs, WithNamesPassEachOtherOverWithoutAWarning) {
  const Logged log;
  const Place place;
  std::vector<BootstrapConfig> configs = configs_for(2, {});
  for (BootstrapConfig& config : configs) {
    config.launcher.master_address = "127.0.0.1";
    config.launcher.master_port = place.at().port();
    config.job = "another";
  }
  EXPECT_EQ(all_of(join_all(configs)).size(), 2u);
  const std::string text = log.text();
  EXPECT_TRUE(contains(text, "is used instead")) << text;
  EXPECT_TRUE(contains(text, "INFO the rendezvous refused a connection from 127.0.0.1:")) << text;
  EXPECT_FALSE(contains(text, "WARN")) << text;
}

// A port that stays taken is tried for some time, but whoever holds it is not asked each time.
TEST(TwoJobs, TheHolderOfAPortIsAskedNotTooOften) {
  const Listener door = taken_port();
  std::atomic<bool> over{false};
  std::thread rank([&] {
    BootstrapConfig config = loopback_config(2, 0, {});
    config.communicator_id = format_address(door.address);
    config.deadline_ns = monotonic_clock().now_ns() + 2 * kSecond;
    const Joined joined = Bootstrap::join(config);
    EXPECT_FALSE(joined.ok());
    EXPECT_TRUE(contains(joined.error().message, "with the rendezvous of another job")) << joined.error().message;
    over = true;
  });
  size_t asked = 0;
  while (!over) {
    const Result<UniqueFd> socket = accept_before(door.fd.get(), {kNever, &over});
    if (!socket.ok()) continue;
    ++asked;
    HandshakeExchange exchange(Role::kAcceptor, Purpose::kRendezvous, {{}, job_id("another job"), 0});
    EXPECT_FALSE(exchange.run_before(socket.value().get(), {kNever, &over}).ok());
  }
  rank.join();
  EXPECT_GE(asked, 1u);
  EXPECT_LE(asked, 20u) << "the pauses grow to a second";
}

// A root that ends every connection when the rank has asked, as one does that cannot read the request.
TEST(TwoJobs, ARankThatIsNeverHeardAsksNotTooOften) {
  const Listener door = taken_port();
  std::atomic<bool> over{false};
  std::thread rank([&] {
    BootstrapConfig config = loopback_config(2, 1, {});
    config.communicator_id = format_address(door.address);
    config.deadline_ns = monotonic_clock().now_ns() + kSecond;
    EXPECT_FALSE(Bootstrap::join(config).ok());
    over = true;
  });
  size_t asked = 0;
  while (!over) {
    const Result<UniqueFd> socket = accept_before(door.fd.get(), {kNever, &over});
    if (!socket.ok()) continue;
    HandshakeExchange exchange(Role::kAcceptor, Purpose::kRendezvous, {{}, job_at(door.address.port(), ""), 0});
    asked += exchange.run_before(socket.value().get(), {kNever, &over}).ok() ? 1 : 0;
  }
  rank.join();
  EXPECT_GE(asked, 1u);
  EXPECT_LE(asked, 60u) << "the pauses grow to a tenth of a second";
}

// The ranks of a meeting have removed its directory, and others have begun another one of its number.
TEST(TwoJobs, OnlyTheDirectoryOfTheOwnMeetingIsRemoved) {
  const std::string place = ::testing::TempDir() + "trestle-two-jobs-" + std::to_string(getpid());
  const std::string meeting = place + "/0";
  const std::string secret(32, 's');
  std::filesystem::create_directories(meeting);
  std::ofstream(meeting + "/secret") << secret;
  JobId job{};
  const std::vector<std::byte> derived = derive_secret(std::as_bytes(std::span(secret)), "job");
  std::copy_n(derived.begin(), job.size(), job.begin());
  clean_store(meeting, JobId{});
  EXPECT_TRUE(std::filesystem::exists(meeting + "/secret"));
  clean_store(meeting, job);
  EXPECT_FALSE(std::filesystem::exists(place)) << "with the last meeting goes the place";
}

}  // namespace
}  // namespace two_jobs_test
}  // namespace trestle
