// The command line of `trestle run`. Owned by main; one thread.
#pragma once

#include <string>
#include <vector>

#include "base/config/launcher.h"
#include "base/result.h"
#include "cli/run/job.h"

namespace CLI {
class App;
}

namespace trestle {

class RunCommand {
 public:
  // Adds `run` to the command line of `app`, which outlives this.
  explicit RunCommand(CLI::App& app);
  RunCommand(const RunCommand&) = delete;
  RunCommand& operator=(const RunCommand&) = delete;

  // The arguments that the parser must see: for `run` everything before the first program, else all of them. In the
  // order that CLI::App::parse wants, the last one first.
  std::vector<std::string> own_arguments(int argc, char** argv);
  bool parsed() const;
  // Parses the options of the programs behind a ':'. To be called after app.parse(). Both throw CLI::ParseError.
  void parse_more_programs();
  // Runs the job and returns its exit status. Errors are one sentence; nothing runs then.
  Result<int> run(const Environment& environment);

 private:
  CLI::App* run_;
  RunOptions options_;
  std::vector<std::string> more_;  // the arguments from the first ':' on
};

}  // namespace trestle
