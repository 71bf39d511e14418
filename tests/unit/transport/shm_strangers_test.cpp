// Processes that are no ranks of the job get nothing over shared memory: another secret, another job, garbage, another
// user of the machine. The ranks of the job continue.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "support/no_descriptors.h"
#include "transport/auth/handshake_exchange.h"
#include "transport/shm/shm.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

constexpr uid_t kNobody = 65534;
constexpr int64_t kGenerousNs = 20'000'000'000;

EndpointConfig config_of(int32_t rank, int32_t ranks) {
  EndpointConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.job = "shm strangers test";
  config.secret.assign(32, std::byte{3});
  return config;
}

// Ranks of one thread, with configurations that may be wrong.
class ShmStrangers : public testing::Test {
 protected:
  void make(const std::vector<EndpointConfig>& configs) {
    for (const EndpointConfig& config : configs) {
      Result<std::unique_ptr<Transport>> made = make_shm_transport(config, {});
      ASSERT_TRUE(made.ok()) << made.error().message;
      ends_.push_back(std::move(made).value());
      addresses_.push_back(ends_.back()->address());
      names_.push_back("rank " + std::to_string(config.rank));
    }
    for (const auto& end : ends_) ASSERT_TRUE(end->set_peers(addresses_, names_).ok());
  }

  // Drives all ranks until this one fails, and returns its sentence. The others must not fail.
  std::string failure_of(int32_t rank) {
    for (;;) {
      for (int32_t r = 0; r < static_cast<int32_t>(ends_.size()); ++r) {
        const Result<bool> moved = ends_[static_cast<size_t>(r)]->progress();
        if (moved.ok()) continue;
        EXPECT_EQ(r, rank) << moved.error().message;
        return moved.error().message;
      }
    }
  }

  // Requires that a message between honest ranks arrives.
  void exchange(size_t from, size_t to) {
    std::string text = "what only this job knows";
    std::string heard(text.size(), '\0');
    const ConstPiece source{reinterpret_cast<const std::byte*>(text.data()), text.size()};
    const Piece target{reinterpret_cast<std::byte*>(heard.data()), heard.size()};
    SendRequest send;
    send.peer = static_cast<int32_t>(to);
    send.bytes = text.size();
    send.pieces = {&source, 1};
    RecvRequest recv;
    recv.peer = static_cast<int32_t>(from);
    recv.bytes = text.size();
    recv.pieces = {&target, 1};
    bool posted = false;
    ASSERT_TRUE(ends_[to]->post_recv(recv).ok());
    while (!posted || send.state != RequestState::kDone || recv.state != RequestState::kDone) {
      if (!posted) posted = ends_[from]->post_send(send).value();
      for (const size_t r : {from, to}) {
        const Result<bool> moved = ends_[r]->progress();
        ASSERT_TRUE(moved.ok()) << moved.error().message;
      }
    }
    EXPECT_EQ(heard, text);
  }

  // Rank `at` waits for a message of a peer, so it must connect to it.
  std::string failure_of_waiting_for(int32_t at, int32_t peer) {
    RecvRequest recv;
    recv.peer = peer;
    recv.bytes = 8;
    std::array<std::byte, 8> bytes;
    const Piece target{bytes.data(), bytes.size()};
    recv.pieces = {&target, 1};
    const Result<bool> posted = ends_[static_cast<size_t>(at)]->post_recv(recv);
    return posted.ok() ? failure_of(at) : posted.error().message;
  }

  std::vector<std::unique_ptr<Transport>> ends_;
  std::vector<std::string> addresses_;
  std::vector<std::string> names_;
};

void expect_parts(const std::string& sentence, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(sentence.find(part), std::string::npos) << "'" << part << "' in: " << sentence;
  }
}

TEST_F(ShmStrangers, AnotherSecretIsRefusedInBothDirections) {
  for (const bool stranger_calls : {true, false}) {
    ends_.clear();
    addresses_.clear();
    names_.clear();
    std::vector<EndpointConfig> configs = {config_of(0, 3), config_of(1, 3), config_of(2, 3)};
    configs[1].secret[31] = std::byte{4};
    make(configs);
    if (stranger_calls) {
      expect_parts(failure_of_waiting_for(1, 0), {"rank 0", "another secret"});
      exchange(0, 2);
      exchange(2, 0);
    } else {
      expect_parts(failure_of_waiting_for(0, 1), {"rank 1", "another secret"});
    }
  }
}

TEST_F(ShmStrangers, AnotherJobIsRefused) {
  std::vector<EndpointConfig> configs = {config_of(0, 3), config_of(1, 3), config_of(2, 3)};
  configs[1].job = "yesterday's job";
  make(configs);
  expect_parts(failure_of_waiting_for(1, 0), {"rank 0", "another job"});
  exchange(0, 2);
}

TEST_F(ShmStrangers, GarbageAndHalfAHandshakeAreTurnedAway) {
  make({config_of(0, 2), config_of(1, 2)});
  const Handshake honest(Role::kInitiator, Purpose::kShm, {config_of(1, 2).secret, job_id(config_of(1, 2).job), 1}, 0);
  const std::vector<std::byte> hello(honest.outgoing().begin(), honest.outgoing().end());
  std::vector<std::byte> replay = hello;  // a proof of another conversation
  replay.insert(replay.end(), kProofBytes, std::byte{9});
  std::vector<UniqueFd> open;
  for (const std::vector<std::byte>& bytes :
       {std::vector<std::byte>(200, std::byte{'G'}), std::vector<std::byte>(hello.begin(), hello.begin() + 20), replay,
        std::vector<std::byte>{}}) {
    open.push_back(connect_unix(addresses_[0]).value());
    ASSERT_TRUE(send_all_before(open.back().get(), bytes, {}).ok());
  }
  exchange(0, 1);
  exchange(1, 0);
}

// Silent connections of the same user fill all places before a peer comes, and repeatedly afterwards.
TEST_F(ShmStrangers, AFloodOfSilentConnectionsKeepsNobodyOut) {
  make({config_of(0, 2), config_of(1, 2)});
  std::vector<UniqueFd> silent;
  const auto flood = [&] {
    for (int i = 0; i < 200; ++i) {
      silent.push_back(connect_unix(addresses_[0]).value());
      ASSERT_TRUE(ends_[0]->progress().ok());
    }
  };
  flood();
  exchange(1, 0);
  flood();
  exchange(0, 1);
  std::array<std::byte, 1> byte;
  const Result<size_t> got = receive_bytes(silent.front().get(), byte);
  EXPECT_TRUE(!got.ok() || got.value() == kEndOfStream) << "the oldest had to go";
}

// A peer in the middle of its handshake is not dropped.
TEST_F(ShmStrangers, AFloodInTheMiddleOfAHandshakeKeepsNobodyOut) {
  for (int rounds = 0; rounds < 12; ++rounds) {
    SCOPED_TRACE(rounds);
    ends_.clear();
    addresses_.clear();
    names_.clear();
    make({config_of(0, 2), config_of(1, 2)});
    RecvRequest never;
    never.peer = 0;
    never.tag.operation = 99;
    ASSERT_TRUE(ends_[1]->post_recv(never).ok());  // begins to connect
    for (int i = 0; i < rounds; ++i) {
      for (const auto& end : ends_) ASSERT_TRUE(end->progress().ok());
    }
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 200; ++i) {
      silent.push_back(connect_unix(addresses_[0]).value());
      ASSERT_TRUE(ends_[0]->progress().ok());
    }
    exchange(1, 0);
    exchange(0, 1);
  }
}

// Forks a process of another user. It exits with the body's result, or with kCannotBecome.
constexpr int kCannotBecome = 99;

pid_t as_nobody(const std::function<int()>& body) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(kCannotBecome);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // after setuid, which clears it
  if (getppid() != parent) _exit(98);
  _exit(body());
}

// Connects with all knowledge of a rank. 0: it is turned away without having received a byte.
int knock(const std::string& address) {
  Result<UniqueFd> fd = connect_unix(address);
  if (!fd.ok() || !fd.value()) return 2;
  const int socket = fd.value().get();
  const Handshake handshake(Role::kInitiator, Purpose::kShm, {config_of(1, 2).secret, job_id(config_of(1, 2).job), 1},
                            0);
  (void)send_bytes(socket, handshake.outgoing());  // if it is already turned away, that is right too
  pollfd waiting{socket, POLLIN, 0};
  if (poll(&waiting, 1, -1) != 1) return 3;
  std::array<std::byte, kHelloBytes> answer;
  const Result<size_t> got = receive_bytes(socket, answer);
  return !got.ok() || got.value() == kEndOfStream ? 0 : 1;
}

int exit_code_of(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(ShmStrangers, AnotherUserWithTheSecretIsTurnedAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  make({config_of(0, 2), config_of(1, 2)});
  const pid_t child = as_nobody([&] { return knock(addresses_[0]); });
  ASSERT_GT(child, 0);
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 && ended.si_pid == 0)
    ASSERT_TRUE(ends_[0]->progress().ok());
  const int code = exit_code_of(child);
  if (code == kCannotBecome) GTEST_SKIP() << "there is no other user to become here";
  EXPECT_EQ(code, 0) << "1: it was answered";
  exchange(1, 0);
}

// Accepts a connection and reads from it. 0: the peer left without sending a byte.
int listen_for(const std::string& address, int ready) {
  const Result<UniqueFd> listener = listen_unix(address);
  if (!listener.ok() || write(ready, "r", 1) != 1) return 2;
  pollfd waiting{listener.value().get(), POLLIN, 0};
  if (poll(&waiting, 1, -1) != 1) return 3;
  const Result<UniqueFd> caller = accept_connection(waiting.fd);
  if (!caller.ok() || !caller.value()) return 4;
  waiting = {caller.value().get(), POLLIN, 0};
  if (poll(&waiting, 1, -1) != 1) return 5;
  std::array<std::byte, kHelloBytes> word;
  const Result<size_t> got = receive_bytes(waiting.fd, word);
  return !got.ok() || got.value() == kEndOfStream ? 0 : 1;
}

TEST_F(ShmStrangers, AListenerOfAnotherUserIsNotTalkedTo) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  make({config_of(0, 2), config_of(1, 2)});
  const std::string address = fresh_unix_name("trestle-test", config_of(1, 2).job, 1);
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = as_nobody([&] { return listen_for(address, ready[1]); });
  ASSERT_GT(child, 0);
  close(ready[1]);
  char byte = 0;
  if (read(ready[0], &byte, 1) == 1) {
    ASSERT_TRUE(ends_[0]->set_peers({addresses_[0], address}, names_).ok());
    expect_parts(failure_of_waiting_for(0, 1), {"rank 1", "another user"});
  }
  close(ready[0]);
  const int code = exit_code_of(child);
  if (code == kCannotBecome) GTEST_SKIP() << "there is no other user to become here";
  EXPECT_EQ(code, 0) << "1: it was told something";
}

// connect_unix() with a socket that is there.
UniqueFd connected(EarlySocket& early, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const size_t length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  return early.connect(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
}

// A rank's connection waits in the listening queue until there is a descriptor for it. A thread that sleeps must not be
// woken again and again meanwhile.
TEST_F(ShmStrangers, WithoutDescriptorsARankSleepsAndTakesItsPeerLater) {
  const std::string sentence = "shared memory: accept: ";
  const Warnings warnings;
  const EndpointConfig config = config_of(1, 2);
  make({config_of(0, 2), config});  // the test speaks for rank 1
  Transport& end = *ends_[0];
  EarlySocket early(AF_UNIX);
  NoDescriptorsLeft none;
  const UniqueFd peer = connected(early, addresses_[0]);
  while (warnings.count(sentence) == 0) ASSERT_TRUE(end.progress().ok());
  pollfd bell{end.event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&bell, 1, 0), 0);
  none.leave_all();
  HandshakeExchange exchange(Role::kInitiator, Purpose::kShm, {config.secret, job_id(config.job), 1}, 0);
  for (bool done = false; !done;) {
    ASSERT_TRUE(end.progress().ok());
    const Result<bool> stepped = exchange.step(peer.get());
    ASSERT_TRUE(stepped.ok()) << stepped.error().message;
    done = stepped.value();
  }
  EXPECT_EQ(warnings.count(sentence), 1u) << "once";
}

}  // namespace
}  // namespace trestle
