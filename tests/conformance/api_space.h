// The factors of a case as indices for Cover, and their meaning. The first four define the communicator, the others the
// call.
#pragma once

#include <string>
#include <vector>

#include "conformance/api_call.h"
#include "conformance/api_cover.h"
#include "support/ranks.h"

namespace api {

enum Factor { kShape, kTransport, kAlgorithm, kChunks, kCollective, kType, kOp, kInPlace, kCount, kFactors };
inline constexpr size_t kCommunicatorFactors = 4;

// The number of values of each factor, by Factor.
std::vector<int> factor_sizes();
// Requires a dimension for each requested transport, and one fixed operator if the collective uses none.
bool is_allowed(const Choice& choice);
// If ranks are on several hosts, the transport applies to ranks of one host. Ranks of different hosts use TCP.
ranks::Settings settings_of(const Choice& choice);
Call call_of(const Choice& choice, uint64_t seed);
// The TRESTLE_ALGO that requests this algorithm, on every dimension, for each collective that it serves. "mixed":
// different algorithms per dimension. "": a free choice.
std::string algorithm_rules(const std::string& algorithm, const std::string& dims);

}  // namespace api
