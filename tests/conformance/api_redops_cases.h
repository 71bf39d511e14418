// Reductions with the caller's operators in every form of a call: inputs, expected results, and a run on one rank.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace api {

// Element i of a rank's contribution and of the result, as bit patterns of the type.
struct Reduction {
  std::string name;
  trestleDataType_t type = trestleUint64;
  std::function<uint64_t(int rank, size_t i)> contribution;
  std::function<uint64_t(size_t i)> result;
};

// The bits of a small whole number, at least 0.
uint64_t bits_of(trestleDataType_t type, double value);
// Sums that every type can hold, in any order. Rank r's scalar is scalar_of(r).
Reduction scaled_sum(trestleDataType_t type, int ranks);
double scalar_of(int rank);
// Affine maps x -> a x + b modulo 2^32 as uint64 (a << 32 | b), rank 0's applied first: not commutative.
Reduction affine_maps(int ranks);
int compose_maps(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void* context);
// The contribution of the first rank, for any type. The operator depends on the order as much as possible.
Reduction first_of_all(trestleDataType_t type, int ranks);
int keep_first(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void* context);
// Exclusive or of all bits.
Reduction exclusive_or(trestleDataType_t type, int ranks);
int xor_bits(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void* context);

// Runs every collective that reduces, in and out of place, with `count` elements (per rank if the collective has
// blocks): as a call, in halves, in a group, and twice as a persistent request. Buffers begin `shift` bytes after an
// aligned address. `allowed`: the result that a call may have; trestleInvalidArgument if the requested algorithm cannot
// serve it.
void run_all_forms(const Reduction& what, trestleRedOp_t op, size_t count, size_t shift, int rank, int ranks,
                   trestleComm_t comm, bool refusals_allowed = false);

}  // namespace api
