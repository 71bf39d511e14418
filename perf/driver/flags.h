// The command lines of the perf binaries: the program's name, and a table of flags that getopt_long reads.
#pragma once

#include <getopt.h>

#include <climits>
#include <span>
#include <string>
#include <vector>

#include "base/text/value_text.h"

namespace trestle::perf {

// Without its folder.
std::string program_name(int argc, char* const* argv, const char* if_unknown);

// A flag of a program with arguments of type A.
template <class A>
struct Flag {
  const char* name;
  char letter;        // 0: none
  const char* value;  // what it takes, as the usage shows it ("": not shown); nullptr: nothing
  const char* help;
  // Sets a member of the arguments. text: "" where the flag takes nothing. Returns what is wrong with it, as what
  // follows the flag's name in a sentence (with a ':' before it where it is a sentence of its own), or "".
  std::string (*set)(A& arguments, const std::string& text);
};

// ---- what sets a member

template <auto kMember, int kLow, int kHigh = INT_MAX, class A>
std::string set_whole(A& arguments, const std::string& text) {
  const Result<int64_t> value = parse_integer(text);
  if (value.ok() && value.value() >= kLow && value.value() <= kHigh) {
    arguments.*kMember = static_cast<int>(value.value());
    return "";
  }
  const std::string range = std::to_string(kLow) + (kHigh == INT_MAX ? " up" : " to " + std::to_string(kHigh));
  return "takes a whole number " + std::string(kHigh == INT_MAX ? "from " : "") + range + ", not '" + text + "'";
}

// One of two words; the first sets the member.
std::string set_either(bool& member, const char* yes, const char* no, const std::string& text);

template <auto kMember, class A>
std::string set_switch(A& arguments, const std::string& text) {
  return set_either(arguments.*kMember, "1", "0", text);
}

// ---- the command line

struct FlagName {
  char letter;
  const char* name;
  const char* value;
};
// The place of each flag that is given, and its value, in order. Returns the first error as a sentence, or "". getopt
// reorders argv.
struct GivenFlag {
  size_t place;
  std::string value;
};
std::string read_words(int argc, char* const* argv, const std::vector<FlagName>& flags, std::vector<GivenFlag>& given);
// A line of the usage.
std::string usage_line(const FlagName& flag, const std::string& help);

// Reads all flags into the arguments. Returns the first error as a sentence, or "".
template <class A>
std::string read_flags(int argc, char* const* argv, std::span<const Flag<A>> flags, A& arguments) {
  std::vector<FlagName> names;
  for (const Flag<A>& flag : flags) names.push_back({flag.letter, flag.name, flag.value});
  std::vector<GivenFlag> given;
  const std::string unread = read_words(argc, argv, names, given);
  for (const GivenFlag& one : given) {
    const Flag<A>& flag = flags[one.place];
    const std::string wrong = flag.set(arguments, one.value);
    if (wrong.empty()) continue;
    const std::string name = flag.letter != 0 ? std::string("-") + flag.letter : std::string("--") + flag.name;
    return name + (wrong.front() == ':' ? "" : " ") + wrong;
  }
  return unread;
}

}  // namespace trestle::perf
