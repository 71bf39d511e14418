// Strangers on the listening ports: garbage, silent connections, half a handshake, a replayed conversation, another job
// on the same port. They are turned away and the job continues.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <sstream>

#include "conformance/api_call.h"
#include "local/api/sockets.h"
#include "support/ranks.h"

namespace api {
namespace strangers_test {
namespace {

using ranks::succeeded;

// Words on the board: signals between the strangers and the ranks.
enum Word { kMayListen, kMayJoin, kJoined, kMayEnd };

std::string garbage(uint64_t seed, size_t bytes) {
  ranks::Random random{seed};
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(random.next());
  return text;
}

// Waits until the other end has closed the connection.
bool is_closed(int fd) {
  char bytes[4096];
  for (;;) {
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, 20'000) != 1) return false;
    if (recv(fd, bytes, sizeof bytes, 0) <= 0) return true;
  }
}

// Connections that stay open until the end of the case.
class Strangers {
 public:
  ~Strangers() {
    for (int fd : open_) close(fd);
  }
  int knock(uint16_t port, const std::string& bytes) {
    const int fd = connect_to(port);
    if (fd < 0) return fd;
    send_all(fd, bytes);
    open_.push_back(fd);
    return fd;
  }
  // Opens connections of all kinds to one port. `recorded` holds the bytes of an honest initiator. Returns those that
  // are refused for their bytes.
  std::vector<int> all_kinds(uint16_t port, const std::string& recorded) {
    knock(port, "");
    std::vector<int> refused;
    refused.push_back(knock(port, garbage(port, 4096)));
    refused.push_back(knock(port, "GET / HTTP/1.1\r\nHost: trestle\r\n\r\n"));
    refused.push_back(knock(port, std::string(500, '\0')));
    if (recorded.empty()) return refused;
    refused.push_back(knock(port, recorded));
    knock(port, recorded.substr(0, recorded.size() / 2));
    knock(port, recorded.substr(0, 1));
    std::string bent = recorded;
    bent[bent.size() - 1] = static_cast<char>(bent.back() ^ 1);
    refused.push_back(knock(port, bent));
    return refused;
  }
  size_t connected() const { return open_.size(); }

 private:
  std::vector<int> open_;
};

// The parts of the handshake's messages that an impostor needs.
constexpr size_t kHelloBytes = 72;
constexpr size_t kRoleAt = 11;
constexpr size_t kRankAt = 16;
constexpr size_t kWantedAt = 20;
constexpr size_t kProofBytes = 40;

std::string receive(int fd, size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t n = recv(fd, text.data(), bytes, MSG_WAITALL);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

// Plays rank 0 to the first rank that connects to the port and returns all its bytes, including its proof. The rank
// gets its own hello back, as if rank 0 had sent it.
std::string overhear(uint16_t port) {
  const Listener impostor(port);
  pollfd waiting{impostor.fd(), POLLIN, 0};
  if (poll(&waiting, 1, 20'000) != 1) return "";
  const int fd = accept(impostor.fd(), nullptr, nullptr);
  std::string said = receive(fd, kHelloBytes);
  if (said.size() == kHelloBytes) {
    std::string answer = said;
    answer[kRoleAt] = 2;
    answer.replace(kRankAt, 4, 4, '\0');      // rank 0
    answer.replace(kWantedAt, 4, 4, '\xff');  // any rank is wanted
    send_all(fd, answer);
    said += receive(fd, kProofBytes);
  }
  close(fd);
  return said;
}

// The number of log lines about refused connections, by "who: reason".
std::map<std::string, int> refusals(const std::string& log) {
  std::map<std::string, int> counts;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("refused a connection from ");
    if (at == std::string::npos) continue;
    const size_t who = line.find("WARN ") + 5;
    ++counts[line.substr(who, at - who) + line.substr(line.find(": ", at) + 2)];
  }
  return counts;
}

constexpr int kPorts = 24;

struct Case {
  uint16_t rendezvous;
  uint16_t first;  // the first of kPorts ports for everything else
  ranks::Env env(const std::string& address) const {
    return {{"TRESTLE_COMM_ID", address},
            {"TRESTLE_SECRET", "what only this job knows"},
            {"TRESTLE_SOCKET_IFNAME", "=lo"},
            {"TRESTLE_PORT_RANGE", std::to_string(first) + "-" + std::to_string(first + kPorts - 1)}};
  }
};

trestleResult_t join_by_address(ranks::Process& process, int64_t timeout_ms, trestleComm_t* comm) {
  const ranks::Settings settings{.ranks = process.ranks, .transport = "tcp", .timeout_ms = timeout_ms};
  const trestleConfig_t config = config_of(settings);
  return trestleCommInitRankConfig(comm, process.ranks, trestleUniqueId{}, process.rank, &config);
}

bool listens(uint16_t port) {
  const int fd = connect_to(port);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

constexpr int kMostRounds = 3000;  // of 10 ms; limits the wait for a job that has failed

void wait_for(uint16_t port) {
  for (int i = 0; i < kMostRounds && !listens(port); ++i) poll(nullptr, 0, 10);
}

// Rank 0 joins after rank 1. Rank 2 joins when it is told to. Then all ranks work until rank 0 is told to stop.
void run_rank(ranks::Process& process) {
  if (process.rank == 0) ranks::wait_until([&] { return process.board.word[kMayListen].load() != 0; });
  if (process.rank == 2) ranks::wait_until([&] { return process.board.word[kMayJoin].load() != 0; });
  trestleComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(join_by_address(process, 60'000, &comm)));
  process.board.word[kJoined].fetch_add(1);
  int32_t more = 1;
  for (uint64_t i = 0; more != 0; ++i) {
    run_and_verify({.count = 20'000 + i % 7, .seed = i}, process.rank, process.ranks, comm);
    if (process.rank == 0) more = process.board.word[kMayEnd].load() == 0 ? 1 : 0;
    ASSERT_TRUE(succeeded(trestleBroadcast(&more, &more, 1, trestleInt32, 0, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  }
  EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
}

TEST(ApiStrangers, AreTurnedAwayAndTheJobGoesOn) {
  const Case at{free_port(), free_port(kPorts)};
  ranks::Job job;
  job.ranks = 3;
  job.env = [&](int) { return at.env("127.0.0.1:" + std::to_string(at.rendezvous)); };
  job.body = run_rank;
  std::string overheard;
  size_t knocked_early = 0;
  size_t knocked_late = 0;
  job.during = [&](ranks::Board& board, const std::vector<pid_t>&) {
    const auto knock_everywhere = [&](Strangers& strangers) {
      for (uint16_t p = at.first; p < at.first + kPorts; ++p) strangers.all_kinds(p, overheard);
    };
    Strangers strangers;
    overheard = overhear(at.rendezvous);  // of rank 1, which tries again
    board.word[kMayListen].store(1);
    wait_for(at.rendezvous);
    // The job is starting: rank 2 is awaited.
    const std::vector<int> refused = strangers.all_kinds(at.rendezvous, overheard);
    knock_everywhere(strangers);
    for (const int fd : refused) EXPECT_TRUE(is_closed(fd)) << "a stranger at the rendezvous was let be";
    knocked_early = strangers.connected();
    board.word[kMayJoin].store(1);
    for (int i = 0; i < kMostRounds && board.word[kJoined].load() < 3; ++i) poll(nullptr, 0, 10);
    knock_everywhere(strangers);  // while the job runs
    knocked_late = strangers.connected() - knocked_early;
    board.word[kMayEnd].store(1);
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  EXPECT_EQ(overheard.size(), kHelloBytes + kProofBytes) << "the replay was not whole";
  EXPECT_GE(knocked_early, 8u) << "nobody listened: the strangers knocked in vain";
  EXPECT_GE(knocked_late, 8u) << "nobody listened: the strangers knocked in vain";
  // Three kinds of garbage and two replays were refused at each port. Each reason is logged once.
  for (const ranks::Outcome& outcome : outcomes) {
    for (const auto& [refusal, times] : refusals(outcome.output)) EXPECT_EQ(times, 1) << refusal;
  }
  const auto at_rendezvous = refusals(outcomes[0].output);
  for (const char* reason : {"what the peer sent is not the beginning of a Trestle connection",
                             "the peer, which claims to be rank 1, has another secret"}) {
    EXPECT_EQ(at_rendezvous.count(std::string("the rendezvous ") + reason), 1u) << reason << "; " << outcomes[0].output;
  }
}

// A second job uses the same port with another secret. It is refused and names the address. The first job is not
// affected.
TEST(ApiStrangers, TwoJobsOnOnePort) {
  const uint16_t rendezvous = free_port();
  const std::string address = "127.0.0.1:" + std::to_string(rendezvous);
  ranks::Job job;
  job.ranks = 4;  // 0 and 1 of the first job, 2 and 3 of the second
  job.env = [&](int rank) {
    return ranks::Env{{"TRESTLE_COMM_ID", address}, {"TRESTLE_SECRET", rank < 2 ? "of the first" : "of the second"}};
  };
  job.body = [&](ranks::Process& process) {
    auto& word = process.board.word;
    if (process.rank >= 2) ranks::wait_until([&] { return listens(rendezvous); });
    if (process.rank == 1) ranks::wait_until([&] { return word[kMayJoin].load() == 2; });
    const ranks::Settings settings{.ranks = 2, .transport = "tcp", .timeout_ms = process.rank < 2 ? 60'000 : 12'000};
    const trestleConfig_t config = config_of(settings);
    trestleComm_t comm = nullptr;
    const trestleResult_t result = trestleCommInitRankConfig(&comm, 2, trestleUniqueId{}, process.rank % 2, &config);
    if (process.rank >= 2) {
      EXPECT_NE(result, trestleSuccess);
      EXPECT_TRUE(ranks::contains(trestleGetLastError(nullptr), std::to_string(rendezvous)))
          << trestleGetLastError(nullptr);
      word[kMayJoin].fetch_add(1);
      return;
    }
    ASSERT_TRUE(succeeded(result));
    run_and_verify({.count = 50'000}, process.rank, 2, comm);
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
}

}  // namespace
}  // namespace strangers_test
}  // namespace api
