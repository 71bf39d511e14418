#include "conformance/buffers/api_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace api {

namespace {

using elements::format_of;
using elements::sign_extend;
using elements::truncate;

// The powers of two that sums of a type are scaled by.
struct Scales {
  int low;
  int high;
};

Scales scales_of(trestleDataType_t type) {
  switch (type) {
    case trestleFloat16:
      return {-24, 4};
    case trestleBfloat16:
      return {-60, 60};
    case trestleFloat8e4m3:
      return {-6, 4};
    case trestleFloat8e5m2:
      return {-14, 11};
    case trestleFloat32:
      return {-100, 80};
    default:
      return {-500, 500};
  }
}

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t random_bits(uint64_t seed, int rank, size_t index) {
  return mix(seed + mix(static_cast<uint64_t>(rank + 1) * 0x9e3779b97f4a7c15ull + index * 0xd1b54a32d192ed03ull));
}

// ---- one rank's value of element `index`

// One rank's integer of a sum. The sum of any of these is at most 2^(mantissa bits + 1) in magnitude.
int64_t sum_part(trestleDataType_t type, uint64_t seed, int rank, int ranks, size_t index) {
  const int64_t exact = int64_t{1} << (format_of(type).mantissa_bits + 1);
  const int64_t most = std::max<int64_t>(1, exact / ranks);
  return static_cast<int64_t>(random_bits(seed, rank, index) % static_cast<uint64_t>(2 * most + 1)) - most;
}

// Averages of small floats multiply each contribution by the float32 next to 1 / ranks before they add it, and round
// every partial sum. So that any order gives the same bits, the contributions of an element are either multiples of the
// number of ranks, all of one sign, or one rank has a contribution, which may be any.
bool is_scaled_first(trestleDataType_t type, trestleRedOp_t op) {
  return op == trestleAvg && is_float(type) && size_of(type) < sizeof(float);
}

bool has_one_part(trestleDataType_t type, uint64_t seed, int ranks, size_t index) {
  const int64_t exact = int64_t{1} << (format_of(type).mantissa_bits + 1);
  return ranks > exact || random_bits(seed ^ 0x04e, 1000, index) % 3 == 0;
}

int64_t average_part(trestleDataType_t type, uint64_t seed, int rank, int ranks, size_t index) {
  const int64_t exact = int64_t{1} << (format_of(type).mantissa_bits + 1);
  const uint64_t of_element = random_bits(seed ^ 0x5167, 1000, index);
  const auto bits = static_cast<int64_t>(random_bits(seed, rank, index) >> 1);
  if (has_one_part(type, seed, ranks, index)) {
    const bool chosen = of_element % static_cast<uint64_t>(ranks) == static_cast<uint64_t>(rank);
    return chosen ? 1 + bits % exact : 0;  // not negative: its share may be a zero, which has a sign
  }
  return (of_element >> 32 & 1 ? -1 : 1) * ranks * (bits % (exact / ranks + 1));
}

int sum_scale(trestleDataType_t type, uint64_t seed, size_t index) {
  const Scales scales = scales_of(type);
  const auto range = static_cast<uint64_t>(scales.high - scales.low + 1);
  return scales.low + static_cast<int>(random_bits(seed ^ 0x5ca1e, 1000, index) % range);
}

double product_part(trestleDataType_t type, uint64_t seed, int rank, int ranks, size_t index) {
  const uint64_t bits = random_bits(seed, rank, index);
  const double sign = (bits >> 60 & 1) != 0 ? -1.0 : 1.0;
  const uint64_t chosen = random_bits(seed ^ 0x9d0d, 1000, index) % static_cast<uint64_t>(ranks);
  if (static_cast<uint64_t>(rank) == chosen) {
    const int mantissa = format_of(type).mantissa_bits;
    const uint64_t fraction = bits & ((uint64_t{1} << mantissa) - 1);
    return sign * (1.0 + std::ldexp(static_cast<double>(fraction), -mantissa));
  }
  if (static_cast<uint64_t>(rank) == (chosen + 1) % static_cast<uint64_t>(ranks))
    return sign * ((bits >> 61 & 1) != 0 ? 2.0 : 0.5);
  return sign;
}

// A finite value that is not a negative zero, because the order among zeros is undefined.
uint64_t finite_bits(trestleDataType_t type, uint64_t seed, int rank, size_t index) {
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t bits = truncate(type, random_bits(seed + attempt * 77, rank, index));
    const double value = decode(type, bits);
    if (std::isfinite(value) && (value != 0 || bits == 0)) return bits;
  }
}

uint64_t input_bits(trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int rank, int ranks, size_t index) {
  if (!is_float(type)) {
    const uint64_t bits = random_bits(seed, rank, index);
    // Odd, so that the product of many is not 0.
    return truncate(type, op == trestleProd ? bits | 1 : bits);
  }
  if (op == trestleMax || op == trestleMin) return finite_bits(type, seed, rank, index);
  if (op == trestleProd) return encode(type, product_part(type, seed, rank, ranks, index));
  const int64_t part = is_scaled_first(type, op) ? average_part(type, seed, rank, ranks, index)
                                                 : sum_part(type, seed, rank, ranks, index);
  return encode(type, std::ldexp(static_cast<double>(part), sum_scale(type, seed, index)));
}

// ---- the result of all ranks

uint64_t reduce_integers(trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int ranks, size_t index) {
  uint64_t result = input_bits(type, op, seed, 0, ranks, index);
  for (int r = 1; r < ranks; ++r) {
    result = elements::fold_integers(type, op, result, input_bits(type, op, seed, r, ranks, index));
  }
  return op == trestleAvg ? elements::divide_integer(type, result, ranks) : result;
}

double reduce_shares(trestleDataType_t type, uint64_t seed, int ranks, size_t index) {
  int64_t sum = 0;
  for (int r = 0; r < ranks; ++r) sum += average_part(type, seed, r, ranks, index);
  const double scaled = std::ldexp(static_cast<double>(sum), sum_scale(type, seed, index));
  if (!has_one_part(type, seed, ranks, index)) return scaled / ranks;  // exact
  return static_cast<double>(static_cast<float>(scaled) * static_cast<float>(1.0 / ranks));
}

double reduce_floats(trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int ranks, size_t index) {
  if (is_scaled_first(type, op)) return reduce_shares(type, seed, ranks, index);
  if (op == trestleSum || op == trestleAvg) {
    int64_t sum = 0;
    for (int r = 0; r < ranks; ++r) sum += sum_part(type, seed, r, ranks, index);
    const double scaled = std::ldexp(static_cast<double>(sum), sum_scale(type, seed, index));
    return op == trestleAvg ? scaled / ranks : scaled;
  }
  const auto part = [&](int rank) {
    return op == trestleProd ? product_part(type, seed, rank, ranks, index)
                             : decode(type, finite_bits(type, seed, rank, index));
  };
  double result = part(0);
  for (int r = 1; r < ranks; ++r) result = elements::fold_floats(op, result, part(r));
  return result;
}

}  // namespace

std::string name(trestleDataType_t type) {
  return format_of(type).name;
}

std::string name(trestleRedOp_t op) {
  static constexpr std::array<const char*, trestleNumOps> kNames = {"sum", "prod", "max", "min", "avg"};
  return kNames.at(op);
}

void fill_bits(void* to, trestleDataType_t type, uint64_t seed, int rank, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) store(type, to, i, random_bits(seed, rank, first + i));
}

void fill_input(void* to, trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int rank, int ranks, size_t first,
                size_t count) {
  for (size_t i = 0; i < count; ++i) store(type, to, i, input_bits(type, op, seed, rank, ranks, first + i));
}

void fill_reduced(void* to, trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int ranks, size_t first,
                  size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = is_float(type) ? encode(type, reduce_floats(type, op, seed, ranks, first + i))
                                         : reduce_integers(type, op, seed, ranks, first + i);
    store(type, to, i, bits);
  }
}

uint64_t distance(trestleDataType_t type, uint64_t a, uint64_t b) {
  if (a == b) return 0;
  const uint64_t top = elements::sign_bit(type);
  const auto line_up = [top](uint64_t bits) {
    const auto size = static_cast<int64_t>(bits & (top - 1));
    return (bits & top) != 0 ? -size : size;
  };
  const int64_t x = line_up(a);
  const int64_t y = line_up(b);
  const uint64_t apart = static_cast<uint64_t>(std::max(x, y)) - static_cast<uint64_t>(std::min(x, y));
  return std::max<uint64_t>(apart, 1);
}

uint64_t tolerance(trestleDataType_t type, trestleRedOp_t op) {
  return op == trestleAvg && is_float(type) && !is_scaled_first(type, op) ? 2 : 0;
}

}  // namespace api
