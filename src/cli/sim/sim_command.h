// `trestle sim`: its options and what it prints. Owned by main; one thread.
#pragma once

#include <memory>
#include <string>

#include "base/config/config.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace trestle {

struct SimCommandOptions;

class SimCommand {
 public:
  // Adds `sim` and what is below it to the command line of `app`, which outlives this.
  explicit SimCommand(CLI::App& app);
  ~SimCommand();
  SimCommand(const SimCommand&) = delete;
  SimCommand& operator=(const SimCommand&) = delete;

  bool parsed() const;
  // What goes to standard output; files named by options are written. Errors are one sentence.
  Result<std::string> run(const Config& config) const;

 private:
  std::unique_ptr<SimCommandOptions> options_;
};

}  // namespace trestle
