// `trestle train`: its options. Owned by main; one thread.
#pragma once

#include <memory>
#include <string>

#include "base/config/config.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace trestle {

struct TrainCommandOptions;

class TrainCommand {
 public:
  // Adds `train` to the command line of `app`, which must outlive this object.
  explicit TrainCommand(CLI::App& app);
  ~TrainCommand();
  TrainCommand(const TrainCommand&) = delete;
  TrainCommand& operator=(const TrainCommand&) = delete;

  bool parsed() const;
  // Returns the text for standard output. `config`: the variables, read for a topology. Errors are one sentence.
  Result<std::string> run(const Config& config) const;

 private:
  std::unique_ptr<TrainCommandOptions> options_;
};

}  // namespace trestle
