// Reductions against the scalar reference: every set of loops, type, operator, number of sources, count and alignment.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "base/rng.h"
#include "kernels/reduce.h"
#include "support/scalar_reference.h"
#include "unit/kernels/kernel_loop_sets.h"

namespace trestle {
namespace {

constexpr std::array<size_t, 12> kCounts = {0, 1, 3, 7, 15, 16, 17, 31, 64, 100, 1000, 4097};
constexpr size_t kMostSources = 9;
constexpr size_t kMostElements = 4097;
constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

enum class Pattern { kRandomBits, kModest, kSpecial };

double special_value(uint64_t choice) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::array<double, 16> kValues = {0.0,     -0.0,    kInfinity, -kInfinity, kNan,    -kNan,
                                              1.0,     -1.0,    448.0,     -57344.0,   65504.0, 0x1p-9,
                                              0x1p-16, 0x1p-24, -0x1p-140, 0x1p-1060};
  return kValues[choice % kValues.size()];
}

template <class T>
void put(std::byte* to, size_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

void put_value(std::byte* to, size_t index, DataType type, double value) {
  const trestleDataType_t of_api = reference::public_type(type);
  elements::store(of_api, to, index, elements::encode(of_api, static_cast<double>(static_cast<float>(value))));
}

void fill(std::byte* to, size_t elements, DataType type, Pattern pattern, Rng& rng) {
  for (size_t i = 0; i < elements * size_of(type); ++i) to[i] = static_cast<std::byte>(rng.next());
  if (!is_float(type) || pattern == Pattern::kRandomBits) return;
  for (size_t i = 0; i < elements; ++i) {
    const bool special = pattern == Pattern::kSpecial && rng.below(2) == 0;
    put_value(to, i, type, special ? special_value(rng.next()) : (rng.uniform() - 0.5) * 8);
  }
}

// Sources and a guarded destination, at a given byte offset from a 64-byte boundary.
class Buffers {
 public:
  explicit Buffers(DataType type) : type_(type) {
    for (auto& memory : memory_) memory.resize(kMostElements * 8 + 4 * kGuardBytes);
  }
  std::byte* at(size_t which, size_t offset) {
    auto address = reinterpret_cast<uintptr_t>(memory_[which].data());
    return memory_[which].data() + (kGuardBytes - address % kGuardBytes) + kGuardBytes + offset;
  }
  void fill_sources(Pattern pattern, Rng& rng) {
    for (size_t s = 0; s < kMostSources; ++s) {
      fill(pristine_[s].data(), kMostElements, type_, pattern, rng);
    }
  }
  // The sources as filled, each at its own alignment.
  std::vector<const std::byte*> sources(size_t count, size_t elements, size_t offset, size_t stride) {
    std::vector<const std::byte*> list;
    for (size_t s = 0; s < count; ++s) {
      std::byte* to = at(s, (offset + s * stride) % kGuardBytes);
      std::memcpy(to, pristine_[s].data(), elements * size_of(type_));
      list.push_back(to);
    }
    return list;
  }
  std::byte* destination(size_t elements, size_t offset) {
    std::byte* to = at(kMostSources, offset);
    std::memset(to - kGuardBytes, static_cast<int>(kGuard), elements * size_of(type_) + 2 * kGuardBytes);
    return to;
  }
  bool guards_intact(const std::byte* destination, size_t elements) const {
    const std::byte* end = destination + elements * size_of(type_);
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (destination[-1 - static_cast<ptrdiff_t>(i)] != kGuard || end[i] != kGuard) return false;
    }
    return true;
  }

 private:
  DataType type_;
  std::array<std::vector<std::byte>, kMostSources + 1> memory_;
  std::array<std::vector<std::byte>, kMostSources> pristine_ = [] {
    std::array<std::vector<std::byte>, kMostSources> all;
    for (auto& one : all) one.resize(kMostElements * 8);
    return all;
  }();
};

// Requires equal bits. If the reference is a NaN, any NaN is right. But max and min of plain floats must return the
// reference's NaN, quiet or not.
testing::AssertionResult same(const std::byte* got, const std::byte* expected, size_t elements, DataType type,
                              ReduceOp op) {
  const size_t size = size_of(type);
  if (elements == 0 || std::memcmp(got, expected, elements * size) == 0) return testing::AssertionSuccess();
  const bool handed_on = (op == ReduceOp::kMax || op == ReduceOp::kMin) && size >= 4;
  const uint64_t quiet = !handed_on ? ~uint64_t{0} : (size == 4 ? uint64_t{1} << 22 : uint64_t{1} << 51);
  for (size_t i = 0; i < elements; ++i) {
    uint64_t got_bits = 0;
    uint64_t expected_bits = 0;
    std::memcpy(&got_bits, got + i * size, size);
    std::memcpy(&expected_bits, expected + i * size, size);
    if (got_bits == expected_bits) continue;
    const bool both_nan = reference::is_nan(expected, i, type) && reference::is_nan(got, i, type);
    if (both_nan && (got_bits | quiet) == (expected_bits | quiet)) continue;
    return testing::AssertionFailure() << "element " << i << " of " << elements << ": bits " << std::hex << got_bits
                                       << ", expected " << expected_bits;
  }
  return testing::AssertionSuccess();
}

struct Case {
  LoopSet set;
  DataType type;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.set.name << " " << to_string(one.type);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const LoopSet& set : kernel_loop_sets()) {
    for (size_t type = 0; type < kDataTypes; ++type) all.push_back({set, static_cast<DataType>(type)});
  }
  return all;
}

class Reduce : public testing::TestWithParam<Case> {
 protected:
  void check_all_sizes(ReduceOp op, ReduceFunction function, Pattern pattern, uint32_t average_over);
  DataType type_ = GetParam().type;
  Buffers buffers_{type_};
  Rng rng_{42};
  std::vector<std::byte> expected_ = std::vector<std::byte>(kMostElements * 8);
};

void Reduce::check_all_sizes(ReduceOp op, ReduceFunction function, Pattern pattern, uint32_t average_over) {
  const size_t size = size_of(type_);
  buffers_.fill_sources(pattern, rng_);
  for (size_t k = 1; k <= kMostSources; ++k) {
    for (const size_t elements : kCounts) {
      const auto reference_sources = buffers_.sources(k, elements, 0, 0);
      reference::reduce(expected_.data(), reference_sources, elements, type_, op, average_over);
      // All aligned; all displaced by one element; each at another alignment that is no multiple of the element's size.
      for (const auto& [offset, stride] : {std::pair<size_t, size_t>{0, 0}, {size, 0}, {1, 3}}) {
        const auto sources = buffers_.sources(k, elements, offset, stride);
        for (const bool streaming : {false, true}) {
          std::byte* dst = buffers_.destination(elements, offset);
          function(dst, sources, elements, {type_, op, average_over, streaming});
          ASSERT_TRUE(same(dst, expected_.data(), elements, type_, op))
              << to_string(op) << " of " << k << " sources, offset " << offset << ", average over " << average_over;
          ASSERT_TRUE(buffers_.guards_intact(dst, elements)) << elements << " elements, offset " << offset;
        }
      }
    }
  }
}

// The least and the greatest numbers, and divisors that have 32 bits.
TEST_P(Reduce, DividesExtremeIntegers) {
  const ReduceFunction function = GetParam().set.find(type_, ReduceOp::kAvg);
  if (function == nullptr || is_float(type_)) return;
  const size_t size = size_of(type_);
  std::vector<std::byte> numbers;
  for (const uint8_t top : {0x80, 0x7f, 0xff, 0x00}) {
    for (const uint8_t bottom : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      for (size_t b = 0; b + 1 < size; ++b) numbers.push_back(static_cast<std::byte>(bottom));
      numbers.push_back(static_cast<std::byte>(size > 1 ? top : top ^ bottom));
    }
  }
  const size_t elements = numbers.size() / size;
  const std::vector<const std::byte*> source = {numbers.data()};
  std::vector<std::byte> got(numbers.size());
  for (const uint32_t divisor :
       {1u, 2u, 3u, 127u, 128u, 255u, 256u, 0x7fffffffu, 0x80000000u, 0x80000001u, 0xffffffffu}) {
    reference::reduce(expected_.data(), source, elements, type_, ReduceOp::kAvg, divisor);
    function(got.data(), source, elements, {type_, ReduceOp::kAvg, divisor, false});
    ASSERT_EQ(std::memcmp(got.data(), expected_.data(), got.size()), 0) << "divided by " << divisor;
  }
}

TEST_P(Reduce, MatchesTheReference) {
  for (size_t o = 0; o < kReduceOps; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    const ReduceFunction function = GetParam().set.find(type_, op);
    if (function == nullptr) continue;
    for (const Pattern pattern : {Pattern::kRandomBits, Pattern::kModest, Pattern::kSpecial}) {
      if (pattern != Pattern::kRandomBits && !is_float(type_)) continue;
      check_all_sizes(op, function, pattern, 0);
    }
    if (op == ReduceOp::kAvg) check_all_sizes(op, function, Pattern::kModest, 7);
    // An int8 cannot hold this divisor.
    if (op == ReduceOp::kAvg) check_all_sizes(op, function, Pattern::kRandomBits, 300);
  }
}

// Contributions are multiplied before they are added, so an average of the largest numbers is no infinity. Sums of
// products are added as they are.
TEST_P(Reduce, AveragesOfSmallFloatsDoNotOverflow) {
  const ReduceFunction function = GetParam().set.find(type_, ReduceOp::kAvg);
  if (function == nullptr || !is_small_float(type_)) return;
  const uint32_t largest = static_cast<uint32_t>(elements::largest(reference::public_type(type_)));
  for (const size_t elements : kCounts) {
    std::vector<std::byte> source(elements * size_of(type_)), got(source.size());
    for (size_t i = 0; i < elements; ++i) std::memcpy(source.data() + i * size_of(type_), &largest, size_of(type_));
    function(got.data(), std::vector<const std::byte*>(2, source.data()), elements, {type_, ReduceOp::kAvg, 2, false});
    ASSERT_EQ(got, source) << elements << " elements";
  }
}

TEST_P(Reduce, AveragesAddSumsAsTheyAre) {
  const ReduceFunction function = GetParam().set.find(type_, ReduceOp::kAvg);
  if (function == nullptr || !is_small_float(type_)) return;
  buffers_.fill_sources(Pattern::kModest, rng_);
  for (size_t k = 1; k <= kMostSources; ++k) {
    std::vector<uint8_t> sums(k);
    for (uint8_t& sum : sums) sum = static_cast<uint8_t>(rng_.below(2));
    for (const size_t elements : kCounts) {
      const auto sources = buffers_.sources(k, elements, 0, 0);
      reference::reduce(expected_.data(), sources, elements, type_, ReduceOp::kAvg, 7, sums);
      std::byte* dst = buffers_.destination(elements, 0);
      function(dst, sources, elements, {type_, ReduceOp::kAvg, 7, false, sums.data()});
      ASSERT_TRUE(same(dst, expected_.data(), elements, type_, ReduceOp::kAvg)) << k << " sources";
    }
  }
}

TEST_P(Reduce, DestinationMayBeAnySource) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
    const ReduceFunction function = GetParam().set.find(type_, op);
    if (function == nullptr) continue;
    buffers_.fill_sources(Pattern::kModest, rng_);
    for (size_t k = 1; k <= 5; ++k) {
      for (const size_t elements : kCounts) {
        reference::reduce(expected_.data(), buffers_.sources(k, elements, 0, 0), elements, type_, op, 0);
        for (size_t target = 0; target < k; ++target) {
          for (const bool streaming : {false, true}) {
            const auto sources = buffers_.sources(k, elements, size_of(type_), 0);
            auto* dst = const_cast<std::byte*>(sources[target]);
            function(dst, sources, elements, {type_, op, 0, streaming});
            ASSERT_TRUE(same(dst, expected_.data(), elements, type_, op))
                << to_string(op) << " of " << k << " sources into source " << target;
          }
        }
      }
    }
  }
}

TEST_P(Reduce, OnePassEqualsPairwiseAndItself) {
  const ReduceFunction function = GetParam().set.find(type_, ReduceOp::kSum);
  if (function == nullptr) return;
  const bool order_fixes_bits = type_ == DataType::kFloat32 || type_ == DataType::kFloat64 || !is_float(type_);
  const ReduceSpec spec{type_, ReduceOp::kSum};
  for (const Pattern pattern : {Pattern::kModest, Pattern::kSpecial}) {
    buffers_.fill_sources(pattern, rng_);
    for (const size_t elements : kCounts) {
      if (elements == 0) continue;
      const size_t bytes = elements * size_of(type_);
      const auto sources = buffers_.sources(kMostSources, elements, 0, 0);
      std::byte* dst = buffers_.destination(elements, 0);
      function(dst, sources, elements, spec);
      const std::vector<std::byte> one_pass(dst, dst + bytes);
      function(dst, sources, elements, spec);
      EXPECT_EQ(std::memcmp(dst, one_pass.data(), bytes), 0) << "two runs differ, " << elements << " elements";
      if (!order_fixes_bits) continue;
      std::memcpy(dst, sources[0], bytes);
      for (size_t s = 1; s < kMostSources; ++s) {
        const std::array<const std::byte*, 2> pair = {dst, sources[s]};
        function(dst, pair, elements, spec);
      }
      EXPECT_TRUE(same(dst, one_pass.data(), elements, type_, ReduceOp::kSum)) << "pairwise, " << elements;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, Reduce, testing::ValuesIn(cases()), [](const testing::TestParamInfo<Case>& info) {
  return info.param.set.name + "_" + to_string(info.param.type);
});

TEST(ReduceChoice, CallsWhatItFinds) {
  const std::array<float, 3> a = {1, 2, 3};
  const std::array<float, 3> b = {4, 5, 6};
  std::array<float, 3> sum{};
  const std::array<const std::byte*, 2> sources = {reinterpret_cast<const std::byte*>(a.data()),
                                                   reinterpret_cast<const std::byte*>(b.data())};
  reduce(reinterpret_cast<std::byte*>(sum.data()), sources, 3, {DataType::kFloat32, ReduceOp::kSum, 2});
  EXPECT_EQ(sum, (std::array<float, 3>{2.5, 3.5, 4.5}));
  EXPECT_STRNE(reduce_instruction_set(), "");
}

TEST(ReduceChoiceDeathTest, RefusesWhatDoesNotExist) {
  EXPECT_DEATH(find_reduce(static_cast<DataType>(99), ReduceOp::kSum), "does not exist");
  EXPECT_DEATH(reduce(nullptr, {}, 1, {}), "at least one source");
}

}  // namespace
}  // namespace trestle
