// Ranks for tests of the public API: functions that run on N ranks, as threads of one process or as N processes.
//
// Every case runs in forked processes: the test program itself never calls the library and never has a second thread,
// so it may fork at any time, a crash or a hang costs one case, and each case chooses its own TRESTLE_ variables.
// Checks inside a child are gtest's (EXPECT_..); the parent repeats what they printed and fails with them.
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

// What a case wants of its communicator; "" and -1: undefined. dims "" with transport "" is the default of the library.
struct Settings {
  int ranks = 2;
  std::string dims{};
  std::string transport{};
  std::string algo{};
  int chunks = -1;
  int64_t timeout_ms = 60'000;
  std::string topo_file{};
  std::string name{};
  std::string hosts{};     // a letter per rank: the host that it pretends to be on; "": all on this one
  bool processes = false;  // for on_ranks()
};
std::ostream& operator<<(std::ostream& out, const Settings& settings);
// Whether the library can prove to others that a rank belongs to the job; otherwise all ranks live in one process.
bool proofs();
// The strings must outlive the result.
trestleConfig_t config_of(const Settings& settings);

// Memory that the test and the processes of one case share; zero at first.
struct Board {
  std::atomic<int> id_written;
  trestleUniqueId id;
  std::atomic<int> arrived;
  std::atomic<int> generation;
  std::atomic<int64_t> word[64];  // for the case's own use
};
// Waits, giving up the processor, until ready() says so. A hang is ended by the watchdog of the case.
void wait_until(const std::function<bool()>& ready);
// Waits until `count` processes or threads are here; nothing of the library is used.
void meet(Board& board, int count);

// One process of a case.
struct Process {
  int rank = 0;
  int ranks = 1;
  Board& board;
  std::string result;  // the parent gets it
};

struct Outcome {
  int exit_code = -1;  // -1: it did not exit by itself
  int signal = 0;      // that ended it
  bool hung = false;   // the watchdog ended it
  std::string output;  // standard output and error
  std::string result;
};

struct Job {
  int ranks = 1;
  std::function<void(Process&)> body{};
  std::function<Env(int rank)> env{};  // may be empty
  std::function<void(Board&, const std::vector<pid_t>&)>
      during{};                // runs in the test while the processes run; may be empty
  std::vector<int> stopped{};  // these never end: killed when all others have ended
  int watchdog_s = 120;        // only to end what hangs
};

// Runs the job to its end; no process of it is left.
std::vector<Outcome> run(const Job& job);
// Adds a failure for every process that did not end well, but those in `except`.
void expect_ended_well(const std::vector<Outcome>& outcomes, const std::vector<int>& except = {});
// Runs a body in a process of its own.
void isolated(const std::function<void()>& body, const Env& env = {}, int watchdog_s = 120);
// A job of processes that all must end well.
void on_processes(const Settings& settings, const std::function<void(Process&, trestleComm_t)>& body,
                  const std::function<Env(int rank)>& env = {}, int watchdog_s = 120);
// All ranks as threads of one isolated process; each thread destroys its communicator at the end.
void on_threads(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body, const Env& env = {},
                int watchdog_s = 120);
// One of the two: as processes where settings say so and ranks can prove who they are.
void on_ranks(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body, int watchdog_s = 120);
// Ranks as threads inside an isolated process.
void run_threads(const Settings& settings, const std::function<void(int rank, trestleComm_t)>& body);

// Joins the case's communicator with the id that rank 0 writes on the board.
trestleResult_t join(Process& process, const Settings& settings, trestleComm_t* comm);

// Success, or a failure with the code and the sentence.
testing::AssertionResult succeeded(trestleResult_t result, trestleComm_t comm = nullptr);
// The code is `expected` and the sentence contains every one of `facts`.
testing::AssertionResult refused(trestleResult_t result, trestleResult_t expected,
                                 const std::vector<std::string>& facts, trestleComm_t comm = nullptr);
bool contains(const std::string& text, const std::string& part);

// A small generator; the same numbers everywhere.
struct Random {
  uint64_t state;
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }
};
// Occupies the processor for a seeded while.
void spin(uint64_t rounds);

}  // namespace ranks
