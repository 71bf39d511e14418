#include "conformance/buffers/api_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace api {

namespace {

// Layout of a floating-point type, and the powers of two that sums are scaled by.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int low_scale;
  int high_scale;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

Format format_of(trestleDataType_t type) {
  switch (type) {
    case trestleFloat16:
      return {5, 10, -24, 4};
    case trestleBfloat16:
      return {8, 7, -60, 60};
    case trestleFloat8e4m3:
      return {4, 3, -6, 4};
    case trestleFloat8e5m2:
      return {5, 2, -14, 11};
    case trestleFloat32:
      return {8, 23, -100, 80};
    default:
      return {11, 52, -500, 500};
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

bool is_signed(trestleDataType_t type) {
  return type == trestleInt8 || type == trestleInt32 || type == trestleInt64;
}

uint64_t truncate(trestleDataType_t type, uint64_t bits) {
  const size_t size = size_of(type);
  return size == 8 ? bits : bits & ((uint64_t{1} << (8 * size)) - 1);
}

int64_t sign_extend(trestleDataType_t type, uint64_t bits) {
  const int unused = 64 - 8 * static_cast<int>(size_of(type));
  return static_cast<int64_t>(bits << unused) >> unused;
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
  const Format format = format_of(type);
  const auto range = static_cast<uint64_t>(format.high_scale - format.low_scale + 1);
  return format.low_scale + static_cast<int>(random_bits(seed ^ 0x5ca1e, 1000, index) % range);
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
    const uint64_t next = input_bits(type, op, seed, r, ranks, index);
    const bool less = is_signed(type) ? sign_extend(type, next) < sign_extend(type, result) : next < result;
    if (op == trestleSum || op == trestleAvg) result = truncate(type, result + next);
    if (op == trestleProd) result = truncate(type, result * next);
    if (op == trestleMax) result = less ? result : next;
    if (op == trestleMin) result = less ? next : result;
  }
  if (op != trestleAvg) return result;
  if (!is_signed(type)) return result / static_cast<uint64_t>(ranks);
  return truncate(type, static_cast<uint64_t>(sign_extend(type, result) / ranks));
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
  double result =
      op == trestleProd ? product_part(type, seed, 0, ranks, index) : decode(type, finite_bits(type, seed, 0, index));
  for (int r = 1; r < ranks; ++r) {
    if (op == trestleProd) {
      result *= product_part(type, seed, r, ranks, index);
      continue;
    }
    const double next = decode(type, finite_bits(type, seed, r, index));
    result = op == trestleMax ? std::max(result, next) : std::min(result, next);
  }
  return result;
}

}  // namespace

size_t size_of(trestleDataType_t type) {
  static constexpr std::array<size_t, trestleNumTypes> kSizes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kSizes.at(type);
}

bool is_float(trestleDataType_t type) {
  return type >= trestleFloat16;
}

std::string name(trestleDataType_t type) {
  static constexpr std::array<const char*, trestleNumTypes> kNames = {"int8",    "uint8",    "int32",   "uint32",
                                                                      "int64",   "uint64",   "float16", "float32",
                                                                      "float64", "bfloat16", "e4m3",    "e5m2"};
  return kNames.at(type);
}

std::string name(trestleRedOp_t op) {
  static constexpr std::array<const char*, trestleNumOps> kNames = {"sum", "prod", "max", "min", "avg"};
  return kNames.at(op);
}

uint64_t encode(trestleDataType_t type, double value) {
  if (type == trestleFloat64) return std::bit_cast<uint64_t>(value);
  if (type == trestleFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const Format format = format_of(type);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
  const double size = std::fabs(value);
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, 1 - format.bias());
  auto quotient = static_cast<uint64_t>(std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent)));
  const uint64_t one = uint64_t{1} << format.mantissa_bits;
  if (quotient == 2 * one) {
    quotient = one;
    ++exponent;
  }
  if (quotient < one) return sign | quotient;
  return sign | static_cast<uint64_t>(exponent + format.bias()) << format.mantissa_bits | (quotient - one);
}

double decode(trestleDataType_t type, uint64_t bits) {
  if (type == trestleFloat64) return std::bit_cast<double>(bits);
  if (type == trestleFloat32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  const Format format = format_of(type);
  const uint64_t one = uint64_t{1} << format.mantissa_bits;
  const uint64_t mantissa = bits & (one - 1);
  const auto exponent = static_cast<int>(bits >> format.mantissa_bits & ((uint64_t{1} << format.exponent_bits) - 1));
  const double sign = (bits >> (format.mantissa_bits + format.exponent_bits) & 1) != 0 ? -1.0 : 1.0;
  const int last = (1 << format.exponent_bits) - 1;
  if (type == trestleFloat8e4m3) {  // no infinities; one NaN per sign
    if (exponent == last && mantissa == one - 1) return NAN;
  } else if (exponent == last) {
    return mantissa == 0 ? sign * HUGE_VAL : NAN;
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), 1 - format.bias() - format.mantissa_bits);
  return sign * std::ldexp(static_cast<double>(one + mantissa), exponent - format.bias() - format.mantissa_bits);
}

uint64_t load(trestleDataType_t type, const void* buffer, size_t index) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(buffer) + index * size_of(type), size_of(type));
  return bits;
}

void store(trestleDataType_t type, void* buffer, size_t index, uint64_t bits) {
  std::memcpy(static_cast<char*>(buffer) + index * size_of(type), &bits, size_of(type));
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
  const uint64_t top = uint64_t{1} << (8 * size_of(type) - 1);
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
