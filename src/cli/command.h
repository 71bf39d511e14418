// A subcommand of the trestle command.
#pragma once

#include <functional>
#include <string>

#include "base/config/config.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace trestle {

struct Command {
  CLI::App* app = nullptr;  // knows whether the command line has it; belongs to the command line
  // Returns the text for standard output, and writes the files that options name. Owns the options. Errors are one
  // sentence.
  std::function<Result<std::string>(const Config&)> run;
};

}  // namespace trestle
