// The command lines of the perf binaries: the program's name, and the flags by getopt_long.
#pragma once

#include <getopt.h>

#include <functional>
#include <string>

namespace trestle::perf {

// Without its folder.
std::string program_name(int argc, char* const* argv, const char* if_unknown);

struct FlagReader {
  const char* letters = ":";      // getopt's; ":" comes first
  const option* names = nullptr;  // ends with an entry of zeros
  // Takes a flag's value ("" where it has none). Returns what is wrong with it, or "".
  std::function<std::string(int flag, const std::string& value)> apply;
  // The name of an unknown flag, for the error message. letter: the flag's letter, or 0 if it has none.
  std::function<std::string(int letter, const std::string& word)> unknown;
};
// Reads all flags; getopt reorders argv. Returns the first error as a sentence, or "".
std::string read_flags(int argc, char* const* argv, const FlagReader& reader);

}  // namespace trestle::perf
