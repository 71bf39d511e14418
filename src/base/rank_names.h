// Translates sentences of one communicator to the rank numbers of another one: ranks are identified by their processes.
//
// Names are like "rank 3 (host a, pid 12)". Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trestle {

// Ranks of one communicator. More are a caller's mistake, and a list of the missing ones would take gigabytes.
inline constexpr int32_t kMostRanks = 1 << 20;

// The " (host a, pid 12)" of such a name; "": it has none.
std::string_view process_of(std::string_view name);

// If the sentence begins with a rank's name: the sentence with the matching one of `names` instead. nullopt if it does
// not, or if none of `names` is in that process. Also nullopt for the process of `own`, the rank that gets the
// sentence: it would be told that it did itself what another rank in its process has done.
std::optional<std::string> in_numbers_of(const std::vector<std::string>& names, const std::string& own,
                                         const std::string& sentence);

}  // namespace trestle
