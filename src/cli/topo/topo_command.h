// `trestle topo`: its options, and what it shows. Owned by main; one thread.
#pragma once

#include <memory>
#include <string>

#include "base/config/config.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace trestle {

struct TopoCommandOptions;

class TopoCommand {
 public:
  // Adds `topo` to the command line of `app`, which must outlive this object.
  explicit TopoCommand(CLI::App& app);
  ~TopoCommand();
  TopoCommand(const TopoCommand&) = delete;
  TopoCommand& operator=(const TopoCommand&) = delete;

  bool parsed() const;
  // Returns the text for standard output, and writes the file that --plot names. If a launcher has started several
  // ranks, all of them meet; rank 0 returns the text and the others "". Errors are one sentence.
  Result<std::string> run(const Config& config) const;

 private:
  std::unique_ptr<TopoCommandOptions> options_;
};

}  // namespace trestle
