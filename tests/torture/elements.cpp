#include "torture/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "torture/random.h"

namespace torture {
namespace {

using elements::decode;
using elements::encode;
using elements::format_of;
using elements::truncate;

constexpr const char* kOpNames[kOps] = {"sum", "prod", "max", "min", "avg", "scaledsum", "xor", "affine"};

// All integers up to this number, and all sums of integers below it, are exact. Limited to keep values small.
int64_t exact_limit(trestleDataType_t type) {
  return std::min<int64_t>(int64_t{1} << (format_of(type).mantissa_bits + 1), 1 << 20);
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
  return v.op == Op::kAvg && is_float(v.type) && format_of(v.type).size < sizeof(float);
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
  const double half = format_of(v.type).mantissa_bits > 5 && h % 2 == 0 ? 0.5 : 0;
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
  const elements::Format& f = format_of(v.type);
  const uint64_t magnitude = ((static_cast<uint64_t>(f.bias()) - h % 3) << f.mantissa_bits) |
                             ((h >> 8) & ((uint64_t{1} << f.mantissa_bits) - 1));
  return magnitude | ((h >> 40 & 1) != 0 ? elements::sign_bit(v.type) : 0);
}

bool is_user(Op op) {
  return op == Op::kXor || op == Op::kAffine;
}

uint64_t scaled(const Values& v, int rank, uint64_t bits) {
  if (v.op != Op::kScaledSum) return bits;
  if (!is_float(v.type)) return truncate(v.type, bits * scalar(v, rank));
  return encode(v.type, decode(v.type, bits) * decode(v.type, scalar(v, rank)));
}

// Scaled numbers are added.
trestleRedOp_t operator_of(const Values& v) {
  return v.op == Op::kScaledSum ? trestleSum : static_cast<trestleRedOp_t>(v.op);
}

uint64_t reduced_integers(const Values& v, size_t j) {
  uint64_t result = scaled(v, 0, input(v, 0, j));
  for (int r = 1; r < v.ranks; ++r)
    result = elements::fold_integers(v.type, operator_of(v), result, scaled(v, r, input(v, r, j)));
  return v.op == Op::kAvg ? elements::divide_integer(v.type, result, v.ranks) : result;
}

uint64_t reduced_floats(const Values& v, size_t j) {
  double result = decode(v.type, scaled(v, 0, input(v, 0, j)));
  for (int r = 1; r < v.ranks; ++r)
    result = elements::fold_floats(operator_of(v), result, decode(v.type, scaled(v, r, input(v, r, j))));
  return encode(v.type, v.op == Op::kAvg ? result / v.ranks : result);
}

}  // namespace

std::string name(Op op) {
  return kOpNames[static_cast<size_t>(op)];
}
uint64_t user_fold(Op op, trestleDataType_t type, uint64_t a, uint64_t b) {
  if (op == Op::kXor) return a ^ b;
  const size_t half = 4 * size_of(type);
  const uint64_t low = (uint64_t{1} << half) - 1;
  const uint64_t factor = (a >> half) * (b >> half);
  const uint64_t offset = (a & low) * (b >> half) + (b & low);
  return ((factor & low) << half) | (offset & low);
}

uint64_t input(const Values& v, int rank, size_t index) {
  const size_t j = index % kPeriod;
  const uint64_t h = mix(v.seed, static_cast<uint64_t>(rank), j);
  if (!v.reduces || is_user(v.op) || !is_float(v.type)) return truncate(v.type, h);
  return v.exact ? encode(v.type, float_input(v, rank, j)) : inexact_input(v, h);
}

uint64_t scalar(const Values& v, int rank) {
  const uint64_t h = mix(v.seed, static_cast<uint64_t>(rank), 0x5ca1e);
  if (!is_float(v.type)) return truncate(v.type, h);
  const bool twice = exact_limit(v.type) / v.ranks >= 2 && h % 3 == 0;
  return encode(v.type, (h % 2 == 0 ? 1.0 : -1.0) * (twice ? 2 : 1));
}

uint64_t reduced(const Values& v, size_t index) {
  const size_t j = index % kPeriod;
  if (!is_user(v.op)) return is_float(v.type) ? reduced_floats(v, j) : reduced_integers(v, j);
  uint64_t result = input(v, 0, j);
  for (int r = 1; r < v.ranks; ++r) result = user_fold(v.op, v.type, result, input(v, r, j));
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
    store(values.type, bytes.data(), j, source == kReduced ? reduced(values, j) : input(values, source, j));
  }
  return bytes;
}

}  // namespace torture
