#include "support/ranks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <thread>

extern char** environ;
// Writes the counters of scripts/coverage, which _exit would lose. Defined only in coverage builds.
extern "C" void __gcov_dump() __attribute__((weak));

namespace ranks {

namespace {

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string contents(int fd) {
  std::string text(static_cast<size_t>(std::max<off_t>(0, lseek(fd, 0, SEEK_END))), '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// The ranks' environment has none of the variables of the present user. RANKS_TRESTLE_X, which a run of the tests may
// set, becomes TRESTLE_X.
void make_environment() {
  constexpr std::string_view kForRanks = "RANKS_";
  std::vector<std::string> names;
  Env for_ranks;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t end = text.find('=');
    if (text.starts_with("TRESTLE_")) names.push_back(text.substr(0, end));
    if (text.starts_with(kForRanks))
      for_ranks[text.substr(kForRanks.size(), end - kForRanks.size())] = text.substr(end + 1);
  }
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) names.push_back(name);
  for (const std::string& name : names) unsetenv(name.c_str());
  if (getenv("TESTS_WORK_DELAY_US") != nullptr && dlsym(RTLD_DEFAULT, "trestleDelaysWork") == nullptr) {
    std::cerr << "TESTS_WORK_DELAY_US is set, but this library does no work late\n";
    _exit(9);
  }
  // An earlier calibration on this machine must not affect a test.
  setenv("TRESTLE_CALIBRATE", "off", 1);
  for (const auto& [name, value] : for_ranks) setenv(name.c_str(), value.c_str(), 1);
}

int failures() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

// One child and its output files.
struct Child {
  pid_t pid = -1;
  int pidfd = -1;
  int output = -1;
  int result = -1;
  bool ended = false;
};

[[noreturn]] void live(const Job& job, const Child& child, int rank, pid_t parent, Board& board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(9);
  dup2(child.output, STDOUT_FILENO);
  dup2(child.output, STDERR_FILENO);
  make_environment();
  if (job.env) {
    for (const auto& [name, value] : job.env(rank)) setenv(name.c_str(), value.c_str(), 1);
  }
  const int before = failures();
  Process process{rank, job.ranks, board, ""};
  job.body(process);
  std::cout.flush();
  fflush(stdout);
  size_t written = 0;
  while (written < process.result.size()) {
    const ssize_t n = write(child.result, process.result.data() + written, process.result.size() - written);
    if (n <= 0) break;
    written += static_cast<size_t>(n);
  }
  if (__gcov_dump != nullptr) __gcov_dump();
  _exit(failures() == before ? 0 : 1);
}

void collect(Child& child, Outcome& outcome) {
  int status = 0;
  if (waitpid(child.pid, &status, 0) != child.pid) return;
  child.ended = true;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.output = contents(child.output);
  outcome.result = contents(child.result);
}

bool is_in(const std::vector<int>& list, size_t value) {
  return std::find(list.begin(), list.end(), static_cast<int>(value)) != list.end();
}

// Waits for all children except the stopped ones, at most until the deadline.
void wait_for(std::vector<Child>& children, std::vector<Outcome>& outcomes, const std::vector<int>& stopped,
              int64_t deadline_ms) {
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<size_t> who;
    for (size_t r = 0; r < children.size(); ++r) {
      if (children[r].ended || is_in(stopped, r)) continue;
      waiting.push_back({children[r].pidfd, POLLIN, 0});
      who.push_back(r);
    }
    if (waiting.empty()) return;
    const int64_t left = deadline_ms - now_ms();
    if (left <= 0) return;
    if (poll(waiting.data(), waiting.size(), static_cast<int>(left)) < 0 && errno != EINTR) return;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) collect(children[who[i]], outcomes[who[i]]);
    }
  }
}

}  // namespace

bool proofs() {
  return TRESTLE_TEST_PROOFS;
}

std::ostream& operator<<(std::ostream& out, const Settings& s) {
  return out << s.ranks << " ranks, dims '" << s.dims << "', transport '" << s.transport << "', algo '" << s.algo
             << "', chunks " << s.chunks << (s.hosts.empty() ? "" : ", hosts " + s.hosts)
             << (s.processes ? ", processes" : "") << (s.peer_paths ? "" : ", no peer paths");
}

trestleConfig_t config_of(const Settings& settings) {
  const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.timeoutMs = settings.timeout_ms;
  config.dims = text(settings.dims);
  // Without libsodium ranks cannot prove that they belong to the job, so the suites run inside one process.
  config.transport = settings.transport.empty() || proofs() ? text(settings.transport) : "loopback";
  config.algo = text(settings.algo);
  if (settings.chunks >= 0) config.chunks = settings.chunks;
  if (!settings.peer_paths) config.peerAccess = 0;
  config.topoFile = text(settings.topo_file);
  config.commName = text(settings.name);
  return config;
}

void wait_until(const std::function<bool()>& ready) {
  while (!ready()) sched_yield();
}

void meet(Board& board, int count) {
  const int generation = board.generation.load();
  if (board.arrived.fetch_add(1) + 1 == count) {
    board.arrived.store(0);
    board.generation.fetch_add(1);
    return;
  }
  wait_until([&] { return board.generation.load() != generation; });
}

std::vector<Outcome> run(const Job& job) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    ADD_FAILURE() << "mmap: " << std::strerror(errno);
    return {};
  }
  Board& board = *new (memory) Board();
  std::vector<Child> children(static_cast<size_t>(job.ranks));
  std::vector<Outcome> outcomes(children.size());
  const pid_t parent = getpid();
  const int64_t deadline_ms = now_ms() + int64_t{1000} * job.watchdog_s;
  std::cout.flush();
  fflush(stdout);
  for (size_t r = 0; r < children.size(); ++r) {
    Child& child = children[r];
    child.output = memfd_create("output", MFD_CLOEXEC);
    child.result = memfd_create("result", MFD_CLOEXEC);
    child.pid = fork();
    if (child.pid == 0) live(job, child, static_cast<int>(r), parent, board);
    child.pidfd = static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0));
  }
  if (job.during) {
    std::vector<pid_t> pids;
    for (const Child& child : children) pids.push_back(child.pid);
    job.during(board, pids);
  }
  wait_for(children, outcomes, job.stopped, deadline_ms);
  for (size_t r = 0; r < children.size(); ++r) {
    if (children[r].ended) continue;
    outcomes[r].hung = !is_in(job.stopped, r);
    kill(children[r].pid, SIGKILL);
    collect(children[r], outcomes[r]);
  }
  for (const Child& child : children) {
    for (int fd : {child.pidfd, child.output, child.result}) close(fd);
  }
  munmap(memory, sizeof(Board));
  return outcomes;
}

void expect_ended_well(const std::vector<Outcome>& outcomes, const std::vector<int>& except) {
  for (size_t r = 0; r < outcomes.size(); ++r) {
    const Outcome& outcome = outcomes[r];
    if (is_in(except, r) || (outcome.exit_code == 0 && !outcome.hung)) continue;
    ADD_FAILURE() << "process " << r
                  << (outcome.hung             ? " hung"
                      : outcome.exit_code >= 0 ? " failed, exit " + std::to_string(outcome.exit_code)
                                               : " died of signal " + std::to_string(outcome.signal))
                  << "; it wrote:\n"
                  << outcome.output.substr(0, 4000);
  }
}

void isolated(const std::function<void()>& body, const Env& env, int watchdog_s) {
  Job job;
  job.body = [&](Process&) { body(); };
  job.env = [&](int) { return env; };
  job.watchdog_s = watchdog_s;
  expect_ended_well(run(job));
}

namespace {

// The time of a round in which processes of this number work for a part of a millisecond and then meet. Without work
// they would meet many times before another program gets a processor.
std::chrono::microseconds round_of(int processes) {
  constexpr int kRounds = 20;
  constexpr uint64_t kWork = 50'000;
  Job job;
  job.ranks = processes;
  job.body = [](Process& process) {
    using Clock = std::chrono::steady_clock;
    meet(process.board, process.ranks);  // all processes have been started
    const auto begin = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      spin(kWork);
      meet(process.board, process.ranks);
    }
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    process.result = std::to_string(took.count() / kRounds);
  };
  const std::vector<Outcome> outcomes = run(job);
  expect_ended_well(outcomes);
  int64_t longest = 0;
  for (const Outcome& outcome : outcomes) longest = std::max(longest, int64_t{std::atol(outcome.result.c_str())});
  return std::chrono::microseconds(longest);
}

}  // namespace

// On two processors a round of 4 processes takes 2 ms if they are quiet, and 10 to 25 ms beside stress-ng --cpu 4 --io
// 2 and a build.
int64_t patient_ms(int processes, int64_t least_ms) {
  constexpr int kRounds = 300;
  constexpr int64_t kMostMs = 20'000;
  const auto rounds = std::chrono::duration_cast<std::chrono::milliseconds>(kRounds * round_of(processes));
  return std::max(least_ms, std::min(int64_t{rounds.count()}, kMostMs));
}

Settings patient(Settings settings) {
  settings.timeout_ms = patient_ms(settings.ranks, settings.timeout_ms);
  return settings;
}

std::vector<Outcome> joined(const Settings& settings, const std::function<void(Process&, trestleComm_t)>& body,
                            const std::function<Env(int rank)>& env, int watchdog_s) {
  Job job;
  job.ranks = settings.ranks;
  job.env = env;
  job.watchdog_s = watchdog_s;
  job.body = [&](Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(join(process, settings, &comm))) << settings;
    body(process, comm);
  };
  std::vector<Outcome> outcomes = run(job);
  expect_ended_well(outcomes);
  return outcomes;
}

void on_processes(const Settings& settings, const std::function<void(Process&, trestleComm_t)>& body,
                  const std::function<Env(int rank)>& env, int watchdog_s) {
  joined(
      settings,
      [&](Process& process, trestleComm_t comm) {
        body(process, comm);
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      },
      env, watchdog_s);
}

namespace {

// The letter of a rank's host as a text; empty if hosts are not pretended.
std::string host_of(const Settings& settings, int rank) {
  return settings.hosts.empty() ? "" : settings.hosts.substr(static_cast<size_t>(rank), 1);
}

// Makes ranks of one process that pretend to be on several hosts, each with its own configuration.
std::vector<trestleComm_t> init_on_hosts(const Settings& settings) {
  std::vector<trestleComm_t> comms(static_cast<size_t>(settings.ranks));
  trestleUniqueId id{};
  EXPECT_TRUE(succeeded(trestleGetUniqueId(&id)));
  std::vector<std::thread> threads;
  for (int r = 0; r < settings.ranks; ++r) {
    threads.emplace_back([&, r] {
      const std::string host = host_of(settings, r);
      trestleConfig_t config = config_of(settings);
      config.hostId = host.c_str();
      trestleComm_t& comm = comms[static_cast<size_t>(r)];
      EXPECT_TRUE(succeeded(trestleCommInitRankConfig(&comm, settings.ranks, id, r, &config))) << settings;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return comms;
}

}  // namespace

void run_threads(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body) {
  std::vector<trestleComm_t> comms(static_cast<size_t>(settings.ranks));
  if (settings.hosts.empty() || !proofs()) {
    const trestleConfig_t config = config_of(settings);
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms.data(), settings.ranks, &config))) << settings;
  } else {
    comms = init_on_hosts(settings);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  std::vector<std::thread> threads;
  for (int r = 0; r < settings.ranks; ++r) {
    threads.emplace_back([&, r] {
      const trestleComm_t comm = comms[static_cast<size_t>(r)];
      body(r, comm);
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void on_threads(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body, const Env& env,
                int watchdog_s) {
  isolated([&] { run_threads(settings, body); }, env, watchdog_s);
}

void on_ranks(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body, int watchdog_s) {
  if (!settings.processes || !proofs()) return on_threads(settings, body, {}, watchdog_s);
  on_processes(
      settings, [&](Process& process, trestleComm_t comm) { body(process.rank, comm); }, {}, watchdog_s);
}

const trestleUniqueId& id_of(Process& process) {
  if (process.rank == 0)
    process.board.id_written.store(trestleGetUniqueId(&process.board.id) == trestleSuccess ? 1 : 2);
  wait_until([&] { return process.board.id_written.load() != 0; });
  return process.board.id;
}

void drop_id(Process& process) {
  meet(process.board, process.ranks);
  process.board.id_written = 0;
  meet(process.board, process.ranks);
}

trestleResult_t join(Process& process, const Settings& settings, trestleComm_t* comm) {
  const trestleUniqueId& id = id_of(process);
  if (process.board.id_written.load() != 1) return trestleSystemError;
  const std::string host = host_of(settings, process.rank);
  trestleConfig_t config = config_of(settings);
  config.hostId = host.c_str();
  return trestleCommInitRankConfig(comm, process.ranks, id, process.rank, &config);
}

testing::AssertionResult succeeded(trestleResult_t result, trestleComm_t comm) {
  if (result == trestleSuccess) return testing::AssertionSuccess();
  return testing::AssertionFailure() << trestleGetErrorString(result) << " (" << result
                                     << "): " << trestleGetLastError(comm);
}

testing::AssertionResult refused(trestleResult_t result, trestleResult_t expected,
                                 const std::vector<std::string>& facts, trestleComm_t comm) {
  const std::string sentence = trestleGetLastError(comm);
  if (result != expected) {
    return testing::AssertionFailure() << "code " << result << " instead of " << expected << ": " << sentence;
  }
  for (const std::string& fact : facts) {
    if (!contains(sentence, fact)) return testing::AssertionFailure() << "no '" << fact << "' in: " << sentence;
  }
  if (sentence.empty()) return testing::AssertionFailure() << "code " << result << " without a sentence";
  return testing::AssertionSuccess();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

void spin(uint64_t rounds) {
  for (std::atomic<uint64_t> i = 0; i < rounds;) i.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace ranks
