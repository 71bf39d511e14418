// Separates the options of `trestle run` from the programs of its ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trestle {

// [OPTIONS] [--] PROGRAM [ARGUMENTS]
struct ProgramArguments {
  std::vector<std::string> options;
  std::vector<std::string> command;  // empty: no program was given
  bool operator==(const ProgramArguments&) const = default;
};

// Whether an option, "-n" or "--env", takes a value; false for anything else.
using TakesValue = std::function<bool(const std::string& option)>;

// Programs are separated by ":"; there is at least one. Everything behind a program's name belongs to the program, up
// to the next ":".
std::vector<ProgramArguments> split_programs(const std::vector<std::string>& arguments, const TakesValue& takes_value);

}  // namespace trestle
