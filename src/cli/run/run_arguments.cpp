#include "cli/run/run_arguments.h"

#include <algorithm>

namespace trestle {
namespace {

// For "-n", "-vn", "-n4", "--env", "--env=A=1": whether the value is the next argument.
bool next_is_value(const std::string& argument, const TakesValue& takes_value) {
  if (argument.starts_with("--")) return argument.find('=') == std::string::npos && takes_value(argument);
  for (size_t i = 1; i < argument.size(); ++i) {
    if (takes_value({'-', argument[i]})) return i + 1 == argument.size();
  }
  return false;
}

ProgramArguments split_program(const std::vector<std::string>& arguments, size_t& at, const TakesValue& takes_value) {
  ProgramArguments program;
  const auto more = [&] { return at < arguments.size() && arguments[at] != ":"; };
  while (more() && arguments[at] != "--" && arguments[at].size() > 1 && arguments[at][0] == '-') {
    const bool value = next_is_value(arguments[at], takes_value);
    program.options.push_back(arguments[at++]);
    if (value && at < arguments.size()) program.options.push_back(arguments[at++]);
  }
  if (more() && arguments[at] == "--") ++at;
  while (more()) program.command.push_back(arguments[at++]);
  return program;
}

}  // namespace

std::vector<ProgramArguments> split_programs(const std::vector<std::string>& arguments, const TakesValue& takes_value) {
  size_t at = 0;
  std::vector<ProgramArguments> programs = {split_program(arguments, at, takes_value)};
  while (at < arguments.size()) {
    ++at;  // the ":"
    programs.push_back(split_program(arguments, at, takes_value));
  }
  return programs;
}

}  // namespace trestle
