// Sentences of one communicator in the numbers of another one: ranks are told apart by their processes.
//
// Names are like "rank 3 (host a, pid 12)". Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trestle {

// Of one communicator. More are a mistake of the caller, and a list of the missing ones would take gigabytes.
inline constexpr int32_t kMostRanks = 1 << 20;

// " (host a, pid 12)" of such a name; "": it has none.
std::string_view process_of(std::string_view name);

// The sentence, beginning with that one of `names` that is meant where it begins with a rank. Nothing where it does
// not, or where none of them lives in that process; nor of the process of `own`, the rank that hears it, because it
// would be told of itself what another rank beside it has done.
std::optional<std::string> in_numbers_of(const std::vector<std::string>& names, const std::string& own,
                                         const std::string& sentence);

}  // namespace trestle
