// Which arguments of `trestle run` are options, and which are the programs of its ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trestle {

// [OPTIONS] [--] PROGRAM [ARGUMENTS]
struct ProgramArguments {
  std::vector<std::string> options;
  std::vector<std::string> command;  // empty: there is none
  bool operator==(const ProgramArguments&) const = default;
};

// Whether an option, "-n" or "--env", has a value; false for what is none.
using TakesValue = std::function<bool(const std::string& option)>;

// Several, separated by ":", at least one. What is behind a program's name is the program's, whatever it looks like, up
// to the next ":".
std::vector<ProgramArguments> split_programs(const std::vector<std::string>& arguments, const TakesValue& takes_value);

}  // namespace trestle
