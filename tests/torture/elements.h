// Values of elements, and the expected results of reductions. Every partial sum of the inputs is exactly representable,
// so any order of additions gives the same bits, and results are compared bit by bit. Values repeat after kPeriod
// elements, a prime number, so that a block in a wrong place is detected.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/elements.h"

namespace torture {

using elements::is_float;
using elements::is_nan;
using elements::load;
using elements::size_of;
using elements::store;

inline constexpr size_t kPeriod = 1021;

enum class Op {
  kSum,
  kProd,
  kMax,
  kMin,
  kAvg,
  kScaledSum,  // trestleRedOpCreatePreMulSum
  kXor,        // a user-defined reduction, commutative
  kAffine,     // a user-defined one in rank order: elements are pairs (a, b), x -> a*x + b
};
inline constexpr int kOps = 8;

std::string name(Op op);

// a op b of the user-defined reductions, on raw bits.
uint64_t user_fold(Op op, trestleDataType_t type, uint64_t a, uint64_t b);

// The kind of values. exact = false: arbitrary floats, whose sums have no reference.
struct Values {
  trestleDataType_t type;
  Op op;
  bool reduces;  // false: raw bits
  bool exact;
  uint64_t seed;
  int ranks;
};
// Element `index` of a rank's input.
uint64_t input(const Values& values, int rank, size_t index);
// The rank's multiplier of Op::kScaledSum.
uint64_t scalar(const Values& values, int rank);
// Element `index` of the reduction over all ranks.
uint64_t reduced(const Values& values, size_t index);

// Sources besides ranks. kReduced: the result of the reduction. kReplaced - r: the values that rank r writes into its
// shard between the halves of a decomposed all-reduce.
inline constexpr int kReduced = -1;
inline constexpr int kReplaced = -2;
// The first elements of a source, at most a period.
std::vector<uint8_t> table(const Values& values, int source, size_t most);

}  // namespace torture
