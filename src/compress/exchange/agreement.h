// Whether all ranks of an exchange make the same call with the same arguments. Collective. A rank that cannot go on
// takes part all the same, so that every rank's call ends with a sentence.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "compress/exchange/rank_calls.h"

namespace trestle {

// An argument that must be the same on all ranks.
struct SaidArgument {
  enum class Kind : uint8_t { kInteger, kNumber, kDigest };  // a digest differs without saying how
  const char* name;                                          // of the config's field
  Kind kind;
  uint64_t word;

  static SaidArgument integer(const char* name, uint64_t value) { return {name, Kind::kInteger, value}; }
  static SaidArgument number(const char* name, double value);
  static SaidArgument digest(const char* name, uint64_t value) { return {name, Kind::kDigest, value}; }
};

// Compares the arguments of all ranks; the first message of a call. Names and kinds are the same on all ranks that make
// the same call. own: why this rank cannot make the call, or success. If a rank cannot, all ranks get that rank's code,
// and the other ranks' sentence names that rank. kInvalidUsage: a rank differs from rank 0; all ranks get the sentence,
// with both values. Throws std::bad_alloc; then the other ranks wait for this one.
Status compare(const RankCalls& calls, const char* function, const std::vector<SaidArgument>& arguments,
               const Status& own);
// Whether all ranks could do what the call needs, for example get memory. Allocates nothing itself.
Status all_could(const RankCalls& calls, const char* function, const Status& own);

}  // namespace trestle
