// Reads the values of the command's options. Pure, but for systems_in(), which reads a file; any thread. Errors
// (kInvalidArgument) are one sentence that begins with the option.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/paper_systems.h"

namespace trestle {

Result<double> finite_value(const std::string& option, const std::string& text);
// Finite and not negative.
Result<double> real_value(const std::string& option, const std::string& text);
// Numbers that are not negative, separated by commas, at least one.
Result<std::vector<double>> real_list(const std::string& option, const std::string& text);
// A whole number from `least` to `most`.
Result<uint32_t> count_value(const std::string& option, const std::string& text, int64_t least, int64_t most);
// Bytes as 1.5M, at least 1.
Result<uint64_t> bytes_value(const std::string& option, const std::string& text);
// As many words as `names` has, separated by commas.
Result<std::vector<std::string>> named_words(const std::string& option, const std::string& text,
                                             const std::string& names);

struct RealPair {
  double first = 0;
  double second = 0;
};
// Two numbers that are not negative, separated by a comma. names: their names, such as "forward,backward".
Result<RealPair> real_pair(const std::string& option, const std::string& text, const std::string& names);

inline constexpr int64_t kMostWorkers = 1 << 30;

// The system in the topology file; "": none. Errors: those of the file.
Result<std::vector<NamedTopology>> systems_in(const std::string& topology_file);

}  // namespace trestle
