// Ending: how a job ends: by itself, after a rank has failed, at the user's signal, or at its time limit.
//
// After a rank has failed, the others get a moment to notice it, report it and end. Those that still run then get
// SIGTERM, and after another moment SIGKILL. A user's signal is passed on at once; a second one is SIGKILL. The first
// cause counts: it is in the summary, and its status is that of the job. Owned by the job, its only thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/run/job_outputs.h"
#include "cli/run/ranks.h"
#include "cli/run/run_options.h"

namespace trestle {

class Ending {
 public:
  static constexpr int kTimedOut = 124;  // exit status, as of timeout(1)

  // All arguments outlive this. The time limit begins now.
  Ending(const RunOptions& options, Ranks& ranks, JobOutputs& outputs);
  void rank_ended(const Rank& rank);
  void signalled(int number);
  void on_time();                  // does what is due by now
  void shift(int64_t stopped_ns);  // the job was stopped for so long
  int64_t next_ns() const;         // when to call on_time()
  bool over() const;               // no process is left to wait for
  bool failed() const { return cause_.has_value(); }
  int finish();                // prints the summary; returns the job's exit status
  int64_t read_by_ns() const;  // when to stop waiting for a reader that takes nothing from now on

 private:
  enum class Step { kRunning, kMoment, kTold, kKilled };
  struct Cause {
    std::string sentence;
    int status = 0;
  };
  void begin(Step step);
  void kill_all(const std::string& why);
  std::string what_others_did() const;
  std::string no_end_after(const std::string& what) const;

  const RunOptions& options_;
  Ranks& ranks_;
  JobOutputs& outputs_;
  Step step_ = Step::kRunning;
  int64_t step_ends_ns_;  // of kMoment and kTold
  int64_t limit_ns_;
  std::string told_by_ = "SIGTERM";
  std::optional<Cause> cause_;
  bool user_has_signalled_ = false;
  int failures_ = 0;
};

}  // namespace trestle
