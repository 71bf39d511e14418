// `trestle sim advise`: its options and what it prints. And `trestle sim train`, which only names the command that
// replaced it. Owned by main; one thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
}

namespace trestle {

inline constexpr int64_t kMostChunks = 65536;  // that the options of simulations take

struct DesignCommandOptions;

class DesignCommands {
 public:
  // Adds both subcommands to `sim`, which must outlive this object.
  explicit DesignCommands(CLI::App& sim);
  ~DesignCommands();
  DesignCommands(const DesignCommands&) = delete;
  DesignCommands& operator=(const DesignCommands&) = delete;

  bool parsed() const;
  // Returns the text for standard output. Errors are one sentence.
  Result<std::string> run() const;

 private:
  std::unique_ptr<DesignCommandOptions> options_;
};

}  // namespace trestle
