// `trestle run`: ranks as processes of this machine, with torchrun's variables.
#pragma once

#include <signal.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config/launcher.h"
#include "base/result.h"
#include "cli/run/binding.h"
#include "cli/run/printer.h"
#include "cli/run/processes.h"

namespace trestle {

// The options of `trestle run`.
struct RankProgram {
  int ranks = 1;
  std::vector<std::string> command;    // program and arguments
  std::string file;                    // which is run; "": `command`'s first word says it
  std::vector<std::string> variables;  // --env, as given
  Environment environment;             // what these say
};

enum class Prefix {
  kAuto,  // "[3] " before every line, except in files of one rank
  kAlways,
  kNever,
};

struct RunOptions {
  std::deque<RankProgram> programs;  // at least one; ranks are numbered across programs
  Bind bind = Bind::kAuto;
  int64_t grace_ns = 2'000'000'000;  // to report the reason, and again between SIGTERM and SIGKILL
  int64_t timeout_ns = 0;            // 0: none
  std::string output_folder;         // "": this process's standard output and error
  Prefix prefix = Prefix::kAuto;
  bool verbose = false;
  bool prints = true;  // false: ranks write where this process does, and nothing is said

  int ranks() const {
    int sum = 0;
    for (const RankProgram& program : programs) sum += program.ranks;
    return sum;
  }
};

// Starts the ranks with `environment` and RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
// TRESTLE_SECRET and TRESTLE_JOB (fresh ones, unless they are set). Returns when all have ended: 0, or the status of
// the job's first failure. Error: the system lacks a resource, which no rank has caused; no rank is left. To be called
// once, from the main thread of a process without other threads: signals and children become the job's.
Result<int> run_ranks(const RunOptions& options, const Environment& environment);

struct Rank {
  int number = 0;
  pid_t pid = 0;              // also of its process group
  std::optional<int> status;  // as waitpid reports it; none: the rank runs
  bool told = false;          // its process group has got a signal that ends it
  bool running() const { return !status.has_value(); }
  std::string name() const { return "rank " + std::to_string(number) + " (pid " + std::to_string(pid) + ")"; }
};

// The job of one `trestle run`: one loop in one thread, which waits for signals.
//
// This process adopts what ranks leave behind (PR_SET_CHILD_SUBREAPER). So a process group without its leader keeps its
// number until this process has waited for the last process in it.
class LocalJob {
 public:
  explicit LocalJob(const RunOptions& options) : options_(options) {}
  ~LocalJob();
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;
  Status prepare(const Environment& environment);
  Result<int> run();

 private:
  // After a rank has failed, the others get a moment to notice it, report it and end. Those that still run then get
  // SIGTERM, and after another moment SIGKILL.
  enum class Step { kRunning, kMoment, kTold, kKilled };
  static constexpr int kTimedOut = 124;  // exit status, as of timeout(1)
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  Status block_signals();
  Status bind();
  Launched start(const RankProgram& program, int number);
  Result<int> not_started(const RankProgram& program, const Launched& failed);
  void say(const std::string& sentence) const;  // on standard error
  void turn(int64_t until_ns);                  // waits for a signal, and does what it asks for
  bool kill_leftovers() const;
  void end_leftovers();
  int wait_for_reader();

  // job_end.cpp: how a job ends
  void collect(std::vector<const Rank*>& ended);
  void reap();
  void rank_ended(const Rank& rank);
  void signalled(int number);
  void stop();
  void on_time();     // does what is due by now
  bool over() const;  // no process is left to wait for
  void begin(Step step);
  void blame(const std::string& cause, int status);  // the first one counts
  const Rank* blamed_by_others();                    // nullptr: the first rank that failed has caused it
  std::string cause();
  void end_ranks(int number, const std::string& why);
  void signal(int number) const;  // to the process groups of present()
  // The running ranks, and those that were told to end and have left processes behind.
  std::vector<const Rank*> present() const;

  const RunOptions& options_;
  Environment environment_;  // of all ranks, without their numbers
  rlimit descriptors_{};     // the ranks' limit; this process may have a higher one
  sigset_t signals_{};
  bool had_children_ = false;
  UniqueFd nothing_;  // /dev/null: the standard input of all ranks but rank 0
  TerminalReader terminal_;
  std::span<Shared> shared_;  // by rank what the guard kills; two words of blamed_, and what the printer has written
  Blame blamed_;
  pid_t guard_ = 0;
  Printer printer_;
  int printer_status_ = 0;
  Binding binding_;
  std::deque<Rank> ranks_;
  Step step_ = Step::kRunning;
  int64_t due_ns_ = kNever;    // the end of the step
  int64_t limit_ns_ = kNever;  // of the job
  int signal_ = 0;             // the first one that ended the job
  int64_t signal_ns_ = 0;
  int impatient_ = 0;             // another one that has come after SIGKILL
  std::string cause_;             // "": none
  const Rank* failed_ = nullptr;  // whose end is the cause
  int64_t failed_ns_ = 0;         // when that was seen
  int64_t blamed_before_ = 0;     // whom the ranks had blamed by then; 0: the printer had read nothing
  int status_ = 0;                // of the cause
};

}  // namespace trestle
