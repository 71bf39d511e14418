// LocalJob: the ranks of one `trestle run`, from the first fork to the last line of output.
//
// One loop in one thread polls signals, the ranks' output and the terminal. Nothing in it blocks: a reader that does
// not read stops the ranks that write, but neither signals nor deadlines (outlet.h has the one exception).
#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <vector>

#include "base/config/launcher.h"
#include "base/result.h"
#include "cli/run/cores/core_claims.h"
#include "cli/run/ending.h"
#include "cli/run/guard.h"
#include "cli/run/job_outputs.h"
#include "cli/run/job_signals.h"
#include "cli/run/leftovers.h"
#include "cli/run/rank_input.h"
#include "cli/run/ranks.h"
#include "cli/run/run_options.h"
#include "cli/run/spawn.h"

namespace trestle {

class LocalJob {
 public:
  // Everything that a job must have before it starts its first rank.
  struct Parts {
    Leftovers leftovers;
    JobSignals signals;
    JobOutputs outputs;
    Guard guard;
    RankInput input;
    UniqueFd nothing;      // /dev/null: the standard input of all ranks but rank 0
    rlimit descriptors{};  // the ranks' limit; this process may have a higher one
  };
  static Result<Parts> prepare(const RunOptions& options);

  // `environment` is the environment of all ranks, without their numbers. `options` outlive this.
  LocalJob(const RunOptions& options, Environment environment, Parts parts);
  // Returns the exit status of the job. Error: the system lacks a resource, which no rank has caused; no rank is left.
  Result<int> run();

 private:
  Status bind();
  Result<Spawned> start(const RankProgram& program, int rank);
  Result<int> not_started(const RankProgram& program, const Spawned& failed);
  void kill_started();
  void show(const Rank& rank);
  void turn();
  void turn_without_signals(int64_t until_ns);
  void wait(int64_t until_ns);
  void pass_on_output();
  void take_signals();
  void stop();
  void end_leftovers();
  void drain();
  bool flush();

  const RunOptions& options_;
  Environment environment_;
  Parts parts_;
  CoreClaims claims_;
  Binding binding_;
  Ranks ranks_;
  Ending ending_;
  std::vector<pollfd> polled_;  // the descriptors of the streams come last
  std::vector<RankStream*> polled_streams_;
};

}  // namespace trestle
