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
  // Adds `sim` and its subcommands to the command line of `app`, which must outlive this object.
  explicit SimCommand(CLI::App& app);
  ~SimCommand();
  SimCommand(const SimCommand&) = delete;
  SimCommand& operator=(const SimCommand&) = delete;

  bool parsed() const;
  // Returns the text for standard output, and writes the files that options name. Errors are one sentence.
  Result<std::string> run(const Config& config) const;

 private:
  std::unique_ptr<SimCommandOptions> options_;
};

}  // namespace trestle
