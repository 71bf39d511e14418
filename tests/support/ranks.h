// Ranks for tests of the public API: functions that run on N ranks, as threads of one process or as N processes.
//
// Every case runs in forked processes. The test program itself never calls the library and never has a second thread,
// so it may fork at any time. A crash or a hang costs one case, and each case sets its own TRESTLE_ variables. Checks
// inside a child are gtest's (EXPECT_..). The parent repeats their output and fails with them.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>
#include <trestle/trestle.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace ranks {

using Env = std::map<std::string, std::string>;

// The communicator of a case. "" and -1: not set. With dims "" and transport "" the library uses its defaults.
struct Settings {
  int ranks = 2;
  std::string dims{};
  std::string transport{};
  std::string algo{};
  int chunks = -1;
  int64_t timeout_ms = 60'000;
  std::string topo_file{};
  std::string name{};
  std::string hosts{};     // a letter per rank: the host that it pretends to be on; "": all on this host
  bool processes = false;  // for on_ranks()
  bool peer_paths = true;  // ranks with devices read each other's memory, if they can (trestleConfig_t.peerAccess)
};
std::ostream& operator<<(std::ostream& out, const Settings& settings);
// Whether the library can prove that a rank belongs to the job. Otherwise all ranks live in one process.
bool proofs();
// The strings must outlive the result.
trestleConfig_t config_of(const Settings& settings);

// Memory that the test and the processes of one case share. Zero at first.
struct Board {
  std::atomic<int> id_written;
  trestleUniqueId id;
  std::atomic<int> arrived;
  std::atomic<int> generation;
  std::atomic<int64_t> word[64];  // for the case's own use
};
// Yields the processor until ready() returns true. The watchdog of the case ends a hang.
void wait_until(const std::function<bool()>& ready);
// Waits until `count` processes or threads have called it. Does not use the library.
void meet(Board& board, int count);

// One process of a case.
struct Process {
  int rank = 0;
  int ranks = 1;
  Board& board;
  std::string result;  // passed to the parent
};

struct Outcome {
  int exit_code = -1;  // -1: it did not exit normally
  int signal = 0;      // the signal that ended it
  bool hung = false;   // the watchdog ended it
  std::string output;  // standard output and error
  std::string result;
};

struct Job {
  int ranks = 1;
  std::function<void(Process&)> body{};
  std::function<Env(int rank)> env{};  // may be empty
  std::function<void(Board&, const std::vector<pid_t>&)>
      // Runs in the test while the processes run; may be empty.
      during{};
  std::vector<int> stopped{};  // these never end; killed when all others have ended
  int watchdog_s = 120;        // only for jobs that hang
};

// Runs the job to its end. Leaves no process of it behind.
std::vector<Outcome> run(const Job& job);
// Adds a failure for every process that did not end well, except those in `except`.
void expect_ended_well(const std::vector<Outcome>& outcomes, const std::vector<int>& except = {});
// Runs a body in a separate process.
void isolated(const std::function<void()>& body, const Env& env = {}, int watchdog_s = 120);
// The deadline of a case in which calls must succeed before one fails at its deadline: `least_ms` on a quiet machine,
// and more while other programs keep it busy. Processes that work and meet find out how slow it is now. The test calls
// this before the case, so that all ranks have the same deadline.
int64_t patient_ms(int processes, int64_t least_ms);
// `settings` with such a deadline.
Settings patient(Settings settings);
// A job of processes that all must end well. Each joins the case's communicator, and the body ends it.
std::vector<Outcome> joined(const Settings& settings, const std::function<void(Process&, trestleComm_t)>& body,
                            const std::function<Env(int rank)>& env = {}, int watchdog_s = 120);
// Such a job, whose processes destroy their communicators behind the body.
void on_processes(const Settings& settings, const std::function<void(Process&, trestleComm_t)>& body,
                  const std::function<Env(int rank)>& env = {}, int watchdog_s = 120);
// Runs all ranks as threads of one isolated process. Each thread destroys its communicator at the end.
void on_threads(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body, const Env& env = {},
                int watchdog_s = 120);
// Runs ranks as processes if the settings say so and ranks can prove that they belong to the job; else as threads.
void on_ranks(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body, int watchdog_s = 120);
// Runs ranks as threads inside an isolated process.
void run_threads(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body);

// The id of the case, which process 0 makes.
const trestleUniqueId& id_of(Process& process);
// All processes call it: the id that is taken next is another one.
void drop_id(Process& process);
// Joins the case's communicator with that id.
trestleResult_t join(Process& process, const Settings& settings, trestleComm_t* comm);

// Success, or an assertion failure with the code and the sentence.
testing::AssertionResult succeeded(trestleResult_t result, trestleComm_t comm = nullptr);
// Succeeds if the code is `expected` and the sentence contains all `facts`.
testing::AssertionResult refused(trestleResult_t result, trestleResult_t expected,
                                 const std::vector<std::string>& facts, trestleComm_t comm = nullptr);
bool contains(const std::string& text, const std::string& part);

// A small generator that gives the same numbers on all machines.
struct Random {
  uint64_t state;
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }
};
// Occupies the processor for this many rounds.
void spin(uint64_t rounds);

}  // namespace ranks
