// The factors of a case: which communicator (first four) and which call, as indices for Cover, and what they mean.
#pragma once

#include <string>
#include <vector>

#include "conformance/api_call.h"
#include "conformance/api_cover.h"
#include "support/ranks.h"

namespace api {

enum Factor { kShape, kTransport, kAlgorithm, kChunks, kCollective, kType, kOp, kInPlace, kCount, kFactors };
inline constexpr size_t kCommunicatorFactors = 4;

// Numbers of values of each factor, by Factor.
std::vector<int> factor_sizes();
// A dimension for each transport that is asked for; one operator where none is used.
bool is_allowed(const Choice& choice);
// Where ranks are on several hosts, the transport is that of those on one host: the others use TCP.
ranks::Settings settings_of(const Choice& choice);
Call call_of(const Choice& choice, uint64_t seed);
// TRESTLE_ALGO that gives this algorithm, on every dimension, to each collective that it serves; "mixed": different
// ones on the dimensions; "" for a free choice.
std::string algorithm_rules(const std::string& algorithm, const std::string& dims);

}  // namespace api
