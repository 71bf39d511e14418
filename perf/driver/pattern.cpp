#include "perf/driver/pattern.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "perf/driver/codec.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

// A 32-bit mixer with low bias (Chris Wellons' lowbias32): every bit of the input affects every bit of the output.
inline uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

uint32_t fold(uint64_t seed, uint32_t salt) {
  return mix(static_cast<uint32_t>(seed) ^ mix(static_cast<uint32_t>(seed >> 32) ^ mix(salt)));
}

// Two independent random words per element. `key` is constant over a run, see for_each_run.
struct Draws {
  uint32_t key;
  uint32_t first(uint32_t index) const { return mix(index ^ key); }
  static uint32_t second(uint32_t first) { return mix(first + 0x9e3779b9u); }
};

template <class Word>
inline Word wide(uint32_t draw) {
  if constexpr (sizeof(Word) == 8) {
    return (static_cast<uint64_t>(mix(draw ^ 0x5bd1e995u)) << 32) | draw;
  } else {
    return static_cast<Word>(draw);
  }
}

// Position of `rank` for an element: rotated by a random shift.
inline int position(uint32_t draw, int nranks, int rank) {
  const int shift = static_cast<int>(((draw >> 16) * static_cast<uint32_t>(nranks)) >> 16);
  const int rotated = rank + shift;
  return rotated >= nranks ? rotated - nranks : rotated;
}

// Calls body(draws, low index of the first element, count, output) for runs of elements whose index has the same upper
// 32 bits. So the loops count in 32 bits and are vectorised.
template <class Word, class Body>
void for_each_run(uint64_t seed, uint32_t salt, size_t first, size_t count, Word* out, Body body) {
  while (count > 0) {
    const uint64_t until = ((static_cast<uint64_t>(first) >> 32) + 1) << 32;
    const size_t run = static_cast<size_t>(std::min<uint64_t>(count, until - first));
    const Draws draws{fold(seed, salt ^ mix(static_cast<uint32_t>(static_cast<uint64_t>(first) >> 32)))};
    body(draws, static_cast<uint32_t>(first), run, out);
    first += run;
    out += run;
    count -= run;
  }
}

// Sum of floats: bounds that keep all partial sums integers of at most `digits` binary digits.
struct SumBounds {
  uint32_t total_mask;  // the total is below half of 2^digits
  uint32_t spread;      // a is 1..spread
  int active;           // positions below this hold +a or -a
};

SumBounds sum_bounds(int digits, int nranks) {
  const uint32_t half = 1u << (std::min(digits, 24) - 1);
  const uint32_t pairs = std::min(static_cast<uint32_t>(nranks / 2), half);
  return {half - 1, pairs == 0 ? 0 : std::min(half / pairs, 65535u), static_cast<int>(2 * pairs)};
}

// What position q adds (as an integer), or the total.
template <bool kResult>
inline int32_t sum_term(uint32_t draw, uint32_t other, int q, const SumBounds& bounds) {
  const int32_t total = static_cast<int32_t>(draw & bounds.total_mask);
  int32_t value = total;
  if constexpr (!kResult) {
    const int32_t a = 1 + static_cast<int32_t>(((other & 0xffffu) * bounds.spread) >> 16);
    value = (q < bounds.active ? ((q & 1) ? -a : a) : 0) + (q == 0 ? total : 0);
  }
  return (draw >> 31) ? -value : value;
}

// A common power of two per element, 1/2 .. 4, so that exponents vary too.
inline float scale_of(uint32_t draw) {
  return std::bit_cast<float>((126u + ((draw >> 24) & 3u)) << 23);
}

template <class Codec, bool kResult>
void float_sum(const Reduction& what, int rank, size_t first, size_t count, typename Codec::Word* out) {
  using Real = typename Codec::Real;
  SumBounds bounds = sum_bounds(Codec::kDigits, what.nranks);
  const int nranks = what.nranks;
  // Averages of small floats multiply before they add, so terms would not cancel. A share may be 0, which has a sign.
  const bool one_term = what.op == trestleAvg && sizeof(typename Codec::Word) < sizeof(float);
  if (one_term) bounds.active = 0;
  const uint32_t kept = one_term ? 0x7fffffffu : 0xffffffffu;
  // A contribution is the sum's term divided by the rank's factor. That is exact, because the factor is 1 or 2.
  const int scalar = !kResult && what.op == kMulSum ? mul_sum_scalar(rank) : 1;
  const Real divisor = static_cast<Real>(kResult && what.op == trestleAvg ? nranks : scalar);
  for_each_run(what.seed, 1, first, count, out,
               [=](Draws draws, uint32_t low, size_t run, typename Codec::Word* words) {
                 for (size_t i = 0; i < run; ++i) {
                   const uint32_t draw = draws.first(low + static_cast<uint32_t>(i)) & kept;
                   const uint32_t other = Draws::second(draw);
                   const int q = position(other, nranks, rank);
                   Real value = static_cast<Real>(sum_term<kResult>(draw, other, q, bounds));
                   if constexpr (sizeof(Real) == 8) {
                     // 48 of the 53 digits: a library that adds doubles as floats must fail.
                     const uint32_t fine = Draws::second(other);
                     value = value * 16777216.0 + sum_term<kResult>(fine, Draws::second(fine), q, bounds);
                   }
                   value *= static_cast<Real>(scale_of(draw));
                   words[i] = Codec::encode(value / divisor);
                 }
               });
}

// Products stay in range, because at most kPairs ranks double and kPairs ranks halve.
constexpr int product_pairs(int digits) {
  return digits == 4 ? 2 : digits == 3 ? 4 : digits == 11 ? 6 : 32;
}

template <class Codec, bool kResult>
void float_prod(const Reduction& what, int rank, size_t first, size_t count, typename Codec::Word* out) {
  using Real = typename Codec::Real;
  const int nranks = what.nranks;
  const int scaling = std::min(nranks - 1, 2 * product_pairs(Codec::kDigits));
  const Real product = (scaling & 1) ? Real{2} : Real{1};
  for_each_run(
      what.seed, 2, first, count, out, [=](Draws draws, uint32_t low, size_t run, typename Codec::Word* words) {
        for (size_t i = 0; i < run; ++i) {
          const uint32_t draw = draws.first(low + static_cast<uint32_t>(i));
          const uint32_t other = Draws::second(draw);
          const int q = position(other, nranks, rank);
          Real any;  // in [1, 2), with as many random digits as the type has
          if constexpr (sizeof(Real) == 8) {
            any = std::bit_cast<double>((wide<uint64_t>(draw) >> 12) | (uint64_t{1023} << 52));
          } else {
            any = std::bit_cast<float>(((draw >> 9) & (0x7fffffu << (24 - Codec::kDigits)) & 0x7fffffu) | (127u << 23));
          }
          const Real first_sign = (draw & 1u) ? Real{-1} : Real{1};
          const Real second_sign = (nranks > 1 && (draw & 2u)) ? Real{-1} : Real{1};
          if constexpr (kResult) {
            words[i] = Codec::encode(any * product * first_sign * second_sign);
          } else {
            const Real factor = q <= scaling ? ((q & 1) ? Real{2} : Real{0.5}) : Real{1};
            words[i] = Codec::encode(q == 0 ? any * first_sign : q == 1 ? factor * second_sign : factor);
          }
        }
      });
}

// max and min: patterns of finite floats and integers are ordered like signed integers if the sign is separated. So "a
// little less" is a subtraction in that order. -0 is never made: whether it is below +0 is not specified.
template <class Word, bool kFloat, bool kSigned, bool kResult>
void extreme(const Reduction& what, int rank, Word largest, size_t first, size_t count, Word* out) {
  using Signed = std::make_signed_t<Word>;
  using Key = std::conditional_t<kFloat || kSigned, Signed, Word>;
  constexpr Word kSignBit = static_cast<Word>(Word{1} << (sizeof(Word) * 8 - 1));
  constexpr int kReach = 32;
  const Key top = kFloat ? static_cast<Key>(largest)
                         : static_cast<Key>(kSigned ? static_cast<Word>(~kSignBit) : static_cast<Word>(~Word{0}));
  const Key bottom = kFloat ? static_cast<Key>(-top) : static_cast<Key>(kSigned ? kSignBit : Word{0});
  const Key high = static_cast<Key>(top - kReach), low_end = static_cast<Key>(bottom + kReach);
  const int nranks = what.nranks;
  const int direction = what.op == trestleMax ? -1 : 1;
  for_each_run(what.seed, 3, first, count, out, [=](Draws draws, uint32_t low, size_t run, Word* words) {
    for (size_t i = 0; i < run; ++i) {
      const uint32_t draw = draws.first(low + static_cast<uint32_t>(i));
      const int q = kResult ? 0 : position(Draws::second(draw), nranks, rank);
      const Key raw = static_cast<Key>(wide<Word>(draw));
      const Key pivot = raw > high ? high : raw < low_end ? low_end : raw;
      const Key key = static_cast<Key>(pivot + static_cast<Key>(direction * (q < kReach ? q : kReach)));
      if constexpr (kFloat) {
        words[i] = key < 0 ? static_cast<Word>(static_cast<Word>(-key) | kSignBit) : static_cast<Word>(key);
      } else {
        words[i] = static_cast<Word>(key);
      }
    }
  });
}

template <class Word, bool kResult>
void integer_sum(const Reduction& what, int rank, size_t first, size_t count, Word* out) {
  const uint64_t n = static_cast<uint64_t>(what.nranks);
  // Sum over ranks of g + r*h. Odd ranks count twice if they are multiplied by 2: there are n/2 of them, and their
  // numbers add up to its square.
  const uint64_t odd = what.op == kMulSum ? n / 2 : 0;
  const Word g_times = kResult ? static_cast<Word>(n + odd) : Word{1};
  const Word h_times = kResult ? static_cast<Word>(n * (n - 1) / 2 + odd * odd) : static_cast<Word>(rank);
  for_each_run(what.seed, 4, first, count, out, [=](Draws draws, uint32_t low, size_t run, Word* words) {
    for (size_t i = 0; i < run; ++i) {
      const uint32_t draw = draws.first(low + static_cast<uint32_t>(i));
      const Word g = wide<Word>(draw), h = static_cast<Word>(wide<Word>(Draws::second(draw)) | 1u);
      words[i] = static_cast<Word>(g * g_times + h * h_times);
    }
  });
}

template <class Word, bool kResult>
void integer_prod(const Reduction& what, int rank, size_t first, size_t count, Word* out) {
  Word others = 1;  // 3^(n-2)
  for (int r = 2; r < what.nranks; ++r) others = static_cast<Word>(others * 3u);
  const int nranks = what.nranks;
  for_each_run(what.seed, 5, first, count, out, [=](Draws draws, uint32_t low, size_t run, Word* words) {
    for (size_t i = 0; i < run; ++i) {
      const uint32_t draw = draws.first(low + static_cast<uint32_t>(i));
      const uint32_t other = Draws::second(draw);
      const Word x = static_cast<Word>(wide<Word>(draw) | 1u), y = static_cast<Word>(wide<Word>(other) | 1u);
      if constexpr (kResult) {
        words[i] = nranks == 1 ? x : static_cast<Word>(x * y * others);
      } else {
        const int q = position(other, nranks, rank);
        words[i] = q == 0 ? x : q == 1 ? y : Word{3};
      }
    }
  });
}

template <class Integer, bool kResult>
void integer_avg(const Reduction& what, int rank, size_t first, size_t count, std::make_unsigned_t<Integer>* out) {
  using Word = std::make_unsigned_t<Integer>;
  const int nranks = what.nranks;
  for_each_run(what.seed, 6, first, count, out, [=](Draws draws, uint32_t low, size_t run, Word* words) {
    for (size_t i = 0; i < run; ++i) {
      const uint32_t draw = draws.first(low + static_cast<uint32_t>(i));
      const uint32_t other = Draws::second(draw);
      // Halved, so that the sum of two does not wrap around.
      const Integer x = static_cast<Integer>(static_cast<Integer>(wide<Word>(draw)) >> 1);
      const Integer y = nranks == 1 ? Integer{0} : static_cast<Integer>(static_cast<Integer>(wide<Word>(other)) >> 1);
      if constexpr (kResult) {
        using Wide = std::conditional_t<std::is_signed_v<Integer>, int64_t, uint64_t>;
        words[i] = static_cast<Word>((static_cast<Wide>(x) + static_cast<Wide>(y)) / static_cast<Wide>(nranks));
      } else {
        const int q = position(other, nranks, rank);
        words[i] = static_cast<Word>(q == 0 ? x : q == 1 ? y : Integer{0});
      }
    }
  });
}

template <class Codec, bool kResult>
void fill_float(const Reduction& what, int rank, size_t first, size_t count, void* out) {
  using Word = typename Codec::Word;
  Word* words = static_cast<Word*>(out);
  if (what.op == trestleProd) return float_prod<Codec, kResult>(what, rank, first, count, words);
  if (what.op == trestleMax || what.op == trestleMin) {
    return extreme<Word, true, true, kResult>(what, rank, Codec::kLargest, first, count, words);
  }
  float_sum<Codec, kResult>(what, rank, first, count, words);
}

template <class Integer, bool kResult>
void fill_integer(const Reduction& what, int rank, size_t first, size_t count, void* out) {
  using Word = std::make_unsigned_t<Integer>;
  Word* words = static_cast<Word*>(out);
  if (what.op == trestleProd) return integer_prod<Word, kResult>(what, rank, first, count, words);
  if (what.op == trestleAvg) return integer_avg<Integer, kResult>(what, rank, first, count, words);
  if (what.op == trestleSum || what.op == kMulSum) return integer_sum<Word, kResult>(what, rank, first, count, words);
  extreme<Word, false, std::is_signed_v<Integer>, kResult>(what, rank, Word{0}, first, count, words);
}

template <bool kResult>
void fill(const Reduction& what, int rank, size_t first, size_t count, void* out) {
  switch (what.type) {
    case trestleInt8:
      return fill_integer<int8_t, kResult>(what, rank, first, count, out);
    case trestleUint8:
      return fill_integer<uint8_t, kResult>(what, rank, first, count, out);
    case trestleInt32:
      return fill_integer<int32_t, kResult>(what, rank, first, count, out);
    case trestleUint32:
      return fill_integer<uint32_t, kResult>(what, rank, first, count, out);
    case trestleInt64:
      return fill_integer<int64_t, kResult>(what, rank, first, count, out);
    case trestleUint64:
      return fill_integer<uint64_t, kResult>(what, rank, first, count, out);
    case trestleFloat16:
      return fill_float<Float16, kResult>(what, rank, first, count, out);
    case trestleFloat32:
      return fill_float<Float32, kResult>(what, rank, first, count, out);
    case trestleFloat64:
      return fill_float<Float64, kResult>(what, rank, first, count, out);
    case trestleBfloat16:
      return fill_float<Bfloat16, kResult>(what, rank, first, count, out);
    case trestleFloat8e4m3:
      return fill_float<Float8e4m3, kResult>(what, rank, first, count, out);
    case trestleFloat8e5m2:
      return fill_float<Float8e5m2, kResult>(what, rank, first, count, out);
    case trestleNumTypes:
      break;
  }
}

template <class Word>
void copied(uint64_t seed, int source, size_t first, size_t count, void* out) {
  const uint32_t salt = 0x10000u + static_cast<uint32_t>(source);
  for_each_run(seed, salt, first, count, static_cast<Word*>(out),
               [](Draws draws, uint32_t low, size_t run, Word* words) {
                 for (size_t i = 0; i < run; ++i) words[i] = wide<Word>(draws.first(low + static_cast<uint32_t>(i)));
               });
}

template <class Word>
size_t differing(const void* got, const void* expected, size_t count, Word tolerance) {
  const Word* a = static_cast<const Word*>(got);
  const Word* b = static_cast<const Word*>(expected);
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    const Word distance = static_cast<Word>(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);
    wrong += distance > tolerance ? 1 : 0;
  }
  return wrong;
}

}  // namespace

void fill_contribution(const Reduction& reduction, int rank, size_t first, size_t count, void* out) {
  fill<false>(reduction, rank, first, count, out);
}

void fill_reduced(const Reduction& reduction, size_t first, size_t count, void* out) {
  fill<true>(reduction, 0, first, count, out);
}

void fill_copied(trestleDataType_t type, uint64_t seed, int source, size_t first, size_t count, void* out) {
  switch (type_info(type).bytes) {
    case 1:
      return copied<uint8_t>(seed, source, first, count, out);
    case 2:
      return copied<uint16_t>(seed, source, first, count, out);
    case 4:
      return copied<uint32_t>(seed, source, first, count, out);
    default:
      return copied<uint64_t>(seed, source, first, count, out);
  }
}

void fill_mul_sum_scalar(trestleDataType_t type, int rank, void* out) {
  const int scalar = mul_sum_scalar(rank);
  const auto put = [out](auto word) { std::memcpy(out, &word, sizeof word); };
  switch (type) {
    case trestleFloat16:
      return put(Float16::encode(static_cast<float>(scalar)));
    case trestleBfloat16:
      return put(Bfloat16::encode(static_cast<float>(scalar)));
    case trestleFloat8e4m3:
      return put(Float8e4m3::encode(static_cast<float>(scalar)));
    case trestleFloat8e5m2:
      return put(Float8e5m2::encode(static_cast<float>(scalar)));
    case trestleFloat32:
      return put(static_cast<float>(scalar));
    case trestleFloat64:
      return put(static_cast<double>(scalar));
    case trestleInt8:
    case trestleUint8:
      return put(static_cast<uint8_t>(scalar));
    case trestleInt32:
    case trestleUint32:
      return put(static_cast<uint32_t>(scalar));
    default:
      return put(static_cast<uint64_t>(scalar));
  }
}

size_t count_wrong(trestleDataType_t type, trestleRedOp_t op, const void* got, const void* expected, size_t count) {
  const TypeInfo& info = type_info(type);
  if (count == 0 || std::memcmp(got, expected, count * info.bytes) == 0) return 0;
  const uint8_t tolerance = info.is_float && op == trestleAvg ? 2 : 0;
  switch (info.bytes) {
    case 1:
      return differing<uint8_t>(got, expected, count, tolerance);
    case 2:
      return differing<uint16_t>(got, expected, count, tolerance);
    case 4:
      return differing<uint32_t>(got, expected, count, tolerance);
    default:
      return differing<uint64_t>(got, expected, count, tolerance);
  }
}

}  // namespace trestle::perf
