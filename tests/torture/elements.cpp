#include "torture/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "torture/random.h"

namespace torture {
namespace {

struct TypeRow {
  const char* name;
  size_t size;
  bool is_float;
  bool is_signed;
  int exponent_bits;
  int mantissa_bits;
};
constexpr TypeRow kTypes[trestleNumTypes] = {
    {"int8", 1, false, true, 0, 0},    {"uint8", 1, false, false, 0, 0},    {"int32", 4, false, true, 0, 0},
    {"uint32", 4, false, false, 0, 0}, {"int64", 8, false, true, 0, 0},     {"uint64", 8, false, false, 0, 0},
    {"float16", 2, true, true, 5, 10}, {"float32", 4, true, true, 8, 23},   {"float64", 8, true, true, 11, 52},
    {"bfloat16", 2, true, true, 8, 7}, {"float8e4m3", 1, true, true, 4, 3}, {"float8e5m2", 1, true, true, 5, 2},
};
constexpr const char* kOpNames[kOps] = {"sum", "prod", "max", "min", "avg", "scaledsum", "xor", "affine"};

const TypeRow& row(trestleDataType_t type) {
  return kTypes[static_cast<size_t>(type)];
}

uint64_t mask(size_t size) {
  return size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
}

int64_t sign_extended(trestleDataType_t type, uint64_t bits) {
  const int shift = 64 - 8 * static_cast<int>(row(type).size);
  return static_cast<int64_t>(bits << shift) >> shift;
}

// All integers up to this number, and all sums of integers below it, are exact. Limited to keep values small.
int64_t exact_limit(trestleDataType_t type) {
  return std::min<int64_t>(int64_t{1} << (row(type).mantissa_bits + 1), 1 << 20);
}

// A small integer, such that `ranks` of them add up exactly. If even ones do not, some ranks contribute zeros.
int64_t small(const Values& v, uint64_t h, int rank, size_t j, int64_t divisor) {
  const int64_t budget = exact_limit(v.type) / (v.ranks * divisor);
  if (budget >= 1) return static_cast<int64_t>(h % static_cast<uint64_t>(2 * budget + 1)) - budget;
  const int64_t place = (rank + static_cast<int64_t>(j)) % v.ranks;
  return place < exact_limit(v.type) / divisor ? static_cast<int64_t>(h % 3) - 1 : 0;
}

// Shares of small floats are rounded before they are added: the contributions of an element are multiples of the number
// of ranks, all of one sign, so that the shares' sums are exact in any order. Numbers of ranks that the type lacks give
// zeros.
bool is_scaled_first(const Values& v) {
  return v.op == Op::kAvg && is_float(v.type) && row(v.type).size < sizeof(float);
}

double of_shared_average(const Values& v, uint64_t h, size_t j) {
  const auto most = static_cast<uint64_t>(exact_limit(v.type) / v.ranks);
  const double sign = mix(v.seed, j) % 2 == 0 ? 1 : -1;
  const auto share = static_cast<double>(h % (most + 1));
  return share == 0 ? 0 : sign * v.ranks * share;
}

// A common value plus offsets that cancel: the sum is a multiple of the number of ranks, so the average is exact.
double of_average(const Values& v, int rank, size_t j) {
  const int place = static_cast<int>((static_cast<size_t>(rank) + j) % static_cast<size_t>(v.ranks));
  const double common = static_cast<double>(mix(v.seed, j) % 3) - 1;
  const bool alone = place == v.ranks - 1 && v.ranks % 2 != 0;
  return common + (alone ? 0 : place % 2 == 0 ? 1 : -1);
}

double of_extremum(const Values& v, uint64_t h) {
  if (h % 211 == 0) return std::nan("");
  const int64_t most = std::min<int64_t>(exact_limit(v.type), 16);
  const double half = row(v.type).mantissa_bits > 5 && h % 2 == 0 ? 0.5 : 0;
  return static_cast<double>(h % static_cast<uint64_t>(2 * most + 1)) - static_cast<double>(most) + half;
}

double float_input(const Values& v, int rank, size_t j) {
  const uint64_t h = mix(v.seed, static_cast<uint64_t>(rank), j);
  const auto owner = static_cast<int>(j % static_cast<size_t>(v.ranks));
  switch (v.op) {
    case Op::kProd:
      return (h % 2 == 0 ? 1.0 : -1.0) * (owner == rank ? 2 : 1);
    case Op::kAvg:
      return is_scaled_first(v) ? of_shared_average(v, h, j) : of_average(v, rank, j);
    case Op::kScaledSum:
      return static_cast<double>(small(v, h, rank, j, exact_limit(v.type) / v.ranks >= 2 ? 2 : 1));
    case Op::kMax:
    case Op::kMin:
      return of_extremum(v, h);
    default:
      return static_cast<double>(small(v, h, rank, j, 1));
  }
}

uint64_t inexact_input(const Values& v, uint64_t h) {
  const double unit = static_cast<double>(h >> 11) * 0x1p-53;
  if (v.type == trestleFloat64) return std::bit_cast<uint64_t>(unit - 0.5);
  if (v.type == trestleFloat32) return std::bit_cast<uint32_t>(static_cast<float>(unit - 0.5));
  // A random mantissa with an exponent near 0.
  const int m = row(v.type).mantissa_bits;
  const uint64_t bias = (uint64_t{1} << (row(v.type).exponent_bits - 1)) - 1;
  const uint64_t magnitude = ((bias - h % 3) << m) | ((h >> 8) & ((uint64_t{1} << m) - 1));
  return magnitude | ((h >> 40 & 1) << (8 * row(v.type).size - 1));
}

bool is_user(Op op) {
  return op == Op::kXor || op == Op::kAffine;
}

uint64_t scaled(const Values& v, int rank, uint64_t bits) {
  if (v.op != Op::kScaledSum) return bits;
  if (!is_float(v.type)) return (bits * scalar(v, rank)) & mask(size_of(v.type));
  return encode(v.type, decode(v.type, bits) * decode(v.type, scalar(v, rank)));
}

double fold_floats(Op op, double a, double b) {
  switch (op) {
    case Op::kProd:
      return a * b;
    case Op::kMax:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
    case Op::kMin:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
    default:
      return a + b;
  }
}

uint64_t fold_integers(trestleDataType_t type, Op op, uint64_t a, uint64_t b) {
  const uint64_t all = mask(size_of(type));
  const bool less = row(type).is_signed ? sign_extended(type, a) < sign_extended(type, b) : a < b;
  switch (op) {
    case Op::kProd:
      return (a * b) & all;
    case Op::kMax:
      return less ? b : a;
    case Op::kMin:
      return less ? a : b;
    default:
      return (a + b) & all;
  }
}

uint64_t reduced_integers(const Values& v, size_t j) {
  uint64_t result = scaled(v, 0, input(v, 0, j));
  for (int r = 1; r < v.ranks; ++r) result = fold_integers(v.type, v.op, result, scaled(v, r, input(v, r, j)));
  if (v.op != Op::kAvg) return result;
  if (!row(v.type).is_signed) return result / static_cast<uint64_t>(v.ranks);
  return static_cast<uint64_t>(sign_extended(v.type, result) / v.ranks) & mask(size_of(v.type));
}

uint64_t reduced_floats(const Values& v, size_t j) {
  double result = decode(v.type, scaled(v, 0, input(v, 0, j)));
  for (int r = 1; r < v.ranks; ++r) result = fold_floats(v.op, result, decode(v.type, scaled(v, r, input(v, r, j))));
  return encode(v.type, v.op == Op::kAvg ? result / v.ranks : result);
}

}  // namespace

std::string name(trestleDataType_t type) {
  return row(type).name;
}
std::string name(Op op) {
  return kOpNames[static_cast<size_t>(op)];
}
size_t size_of(trestleDataType_t type) {
  return row(type).size;
}
bool is_float(trestleDataType_t type) {
  return row(type).is_float;
}

uint64_t encode(trestleDataType_t type, double value) {
  if (type == trestleFloat64) return std::bit_cast<uint64_t>(value);
  if (type == trestleFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const TypeRow& t = row(type);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (8 * t.size - 1) : 0;
  // All bits set is a NaN of every small type.
  if (std::isnan(value)) return mask(t.size) >> 1;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, t.mantissa_bits + 1));
  const int bias = (1 << (t.exponent_bits - 1)) - 1;
  const auto biased = static_cast<uint64_t>(exponent - 1 + bias);
  return sign | (biased << t.mantissa_bits) | (mantissa & ((uint64_t{1} << t.mantissa_bits) - 1));
}

bool is_nan(trestleDataType_t type, uint64_t bits) {
  if (!is_float(type)) return false;
  const TypeRow& t = row(type);
  const uint64_t magnitude = bits & (mask(t.size) >> 1);
  if (type == trestleFloat8e4m3) return magnitude == 0x7f;
  return magnitude > ((uint64_t{1} << t.exponent_bits) - 1) << t.mantissa_bits;
}

double decode(trestleDataType_t type, uint64_t bits) {
  if (type == trestleFloat64) return std::bit_cast<double>(bits);
  if (type == trestleFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (is_nan(type, bits)) return std::nan("");
  const TypeRow& t = row(type);
  const auto exponent = static_cast<int>((bits >> t.mantissa_bits) & ((uint64_t{1} << t.exponent_bits) - 1));
  const auto mantissa = static_cast<double>(bits & ((uint64_t{1} << t.mantissa_bits) - 1));
  const int bias = (1 << (t.exponent_bits - 1)) - 1;
  const double unit = std::ldexp(1.0, -t.mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa * unit, 1 - bias) : std::ldexp(1 + mantissa * unit, exponent - bias);
  return bits >> (8 * t.size - 1) != 0 ? -magnitude : magnitude;
}

uint64_t load(size_t size, const void* from, size_t index) {
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const uint8_t*>(from) + index * size, size);
  return bits;
}
void store(size_t size, void* to, size_t index, uint64_t bits) {
  std::memcpy(static_cast<uint8_t*>(to) + index * size, &bits, size);
}

uint64_t user_fold(Op op, size_t size, uint64_t a, uint64_t b) {
  if (op == Op::kXor) return a ^ b;
  const size_t half = 4 * size;
  const uint64_t low = (uint64_t{1} << half) - 1;
  const uint64_t factor = (a >> half) * (b >> half);
  const uint64_t offset = (a & low) * (b >> half) + (b & low);
  return ((factor & low) << half) | (offset & low);
}

uint64_t input(const Values& v, int rank, size_t index) {
  const size_t j = index % kPeriod;
  const uint64_t h = mix(v.seed, static_cast<uint64_t>(rank), j);
  if (!v.reduces || is_user(v.op) || !is_float(v.type)) return h & mask(size_of(v.type));
  return v.exact ? encode(v.type, float_input(v, rank, j)) : inexact_input(v, h);
}

uint64_t scalar(const Values& v, int rank) {
  const uint64_t h = mix(v.seed, static_cast<uint64_t>(rank), 0x5ca1e);
  if (!is_float(v.type)) return h & mask(size_of(v.type));
  const bool twice = exact_limit(v.type) / v.ranks >= 2 && h % 3 == 0;
  return encode(v.type, (h % 2 == 0 ? 1.0 : -1.0) * (twice ? 2 : 1));
}

uint64_t reduced(const Values& v, size_t index) {
  const size_t j = index % kPeriod;
  if (!is_user(v.op)) return is_float(v.type) ? reduced_floats(v, j) : reduced_integers(v, j);
  uint64_t result = input(v, 0, j);
  for (int r = 1; r < v.ranks; ++r) result = user_fold(v.op, size_of(v.type), result, input(v, r, j));
  return result;
}

std::vector<uint8_t> table(const Values& values, int source, size_t most) {
  if (source <= kReplaced) {
    const Values raw{values.type, values.op, false, true, mix(values.seed, 0x5a4d), values.ranks};
    return table(raw, kReplaced - source, most);
  }
  const size_t size = size_of(values.type);
  std::vector<uint8_t> bytes(std::min(most, kPeriod) * size);
  for (size_t j = 0; j * size < bytes.size(); ++j) {
    store(size, bytes.data(), j, source == kReduced ? reduced(values, j) : input(values, source, j));
  }
  return bytes;
}

}  // namespace torture
