// Conversions, scaling and copies.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/rng.h"
#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/small_float.h"
#include "support/scalar_reference.h"

namespace trestle {
namespace {

constexpr std::array<DataType, 4> kSmallTypes = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat8e4m3,
                                                 DataType::kFloat8e5m2};

uint32_t bits_at(const std::vector<std::byte>& memory, size_t index, DataType type) {
  return static_cast<uint32_t>(elements::load(reference::public_type(type), memory.data(), index));
}

// Every value of every small type widens to its exact value and narrows back to itself.
TEST(Convert, EverySmallValueRoundTrips) {
  for (const DataType type : kSmallTypes) {
    const size_t count = size_t{1} << (8 * size_of(type));
    std::vector<std::byte> all(count * size_of(type));
    for (size_t i = 0; i < count; ++i) std::memcpy(all.data() + i * size_of(type), &i, size_of(type));
    std::vector<float> wide(count);
    widen_to_float32(wide.data(), all.data(), count, type);
    std::vector<std::byte> back(all.size());
    narrow_from_float32(back.data(), wide.data(), count, type);
    for (uint32_t i = 0; i < count; ++i) {
      const float expected = reference::decode_small(i, type);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[i])) << to_string(type) << " " << i;
        ASSERT_TRUE(std::isnan(reference::decode_small(bits_at(back, i, type), type)));
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(expected)) << to_string(type) << " " << i;
        ASSERT_EQ(bits_at(back, i, type), i) << to_string(type);
      }
    }
  }
}

// Values between two neighbours: just below the middle, the middle (rounds to the even one) and just above; and values
// beyond the largest one.
TEST(Convert, NarrowingRoundsToNearestEven) {
  for (const DataType type : kSmallTypes) {
    std::vector<float> values = {0.0f,     -0.0f,      INFINITY, -INFINITY, NAN,    464.0f,  464.1f,
                                 65519.0f, 65520.0f,   61439.0f, 61440.0f,  1e38f,  3.4e38f, 1e-45f,
                                 0x1p-10f, 0x1.8p-10f, 0x1p-17f, 0x1p-25f,  -1e-40f};
    const std::vector<float>& all = reference::small_values(type);
    for (size_t i = 0; i + 1 < all.size() / 2; ++i) {
      const double middle = (static_cast<double>(all[i]) + all[i + 1]) / 2;
      if (!std::isfinite(middle)) continue;
      for (const float sign : {1.0f, -1.0f}) {
        const float at = sign * static_cast<float>(middle);
        values.insert(values.end(), {at, std::nextafter(at, INFINITY), std::nextafter(at, -INFINITY)});
      }
    }
    Rng rng(7);
    for (int i = 0; i < 100000; ++i) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng.next())));
    std::vector<std::byte> narrow(values.size() * size_of(type));
    narrow_from_float32(narrow.data(), values.data(), values.size(), type);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t expected = reference::encode_small(values[i], type);
      const uint32_t got = bits_at(narrow, i, type);
      if (std::isnan(values[i])) {
        ASSERT_TRUE(std::isnan(reference::decode_small(got, type)));
      } else {
        ASSERT_EQ(got, expected) << to_string(type) << " of " << values[i];
      }
    }
  }
}

TEST(Convert, KnownValues) {
  EXPECT_EQ(float_to_half(1.0f), 0x3c00);
  EXPECT_EQ(float_to_half(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_bfloat16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_e4m3(448.0f), 0x7e);
  EXPECT_EQ(float_to_e4m3(464.0f), 0x7e);
  EXPECT_EQ(float_to_e4m3(1000.0f), 0x7f);
  EXPECT_EQ(float_to_e4m3(-INFINITY), 0xff);
  EXPECT_EQ(float_to_e5m2(57344.0f), 0x7b);
  EXPECT_EQ(float_to_e5m2(61440.0f), 0x7c);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1p-9f);
  EXPECT_EQ(e5m2_to_float(0x01), 0x1p-16f);
}

TEST(Convert, Float32IsCopied) {
  const std::array<float, 3> values = {1.5f, -2.0f, 1e-40f};
  std::array<float, 3> out{};
  widen_to_float32(out.data(), reinterpret_cast<const std::byte*>(values.data()), 3, DataType::kFloat32);
  EXPECT_EQ(out, values);
  narrow_from_float32(reinterpret_cast<std::byte*>(out.data()), values.data(), 3, DataType::kFloat32);
  EXPECT_EQ(out, values);
}

TEST(Scale, MultipliesAndRoundsOnce) {
  std::array<double, 3> doubles = {1.0, 3.0, -0.5};
  auto* memory = reinterpret_cast<std::byte*>(doubles.data());
  scale(memory, memory, 3, DataType::kFloat64, 0.1);
  EXPECT_EQ(doubles, (std::array<double, 3>{1.0 * 0.1, 3.0 * 0.1, -0.5 * 0.1}));
  std::array<uint16_t, 2> halves = {float_to_half(3.0f), float_to_half(60000.0f)};
  auto* half_memory = reinterpret_cast<std::byte*>(halves.data());
  scale(half_memory, half_memory, 2, DataType::kFloat16, 2.0);
  EXPECT_EQ(halves, (std::array<uint16_t, 2>{float_to_half(6.0f), 0x7c00}));
  EXPECT_DEATH(scale(memory, memory, 1, DataType::kInt32, 2.0), "only floating point");
}

TEST(Copy, EverySizeAndAlignment) {
  std::vector<std::byte> from(40000);
  Rng rng(3);
  for (std::byte& b : from) b = static_cast<std::byte>(rng.next());
  std::vector<std::byte> to(from.size());
  for (const size_t bytes : {0, 1, 63, 64, 65, 1000, 4095, 4096, 4097, 4096 + 63, 32769}) {
    for (const size_t from_offset : {0, 1, 64}) {
      for (const size_t to_offset : {0, 1, 32, 63}) {
        for (const bool streaming : {false, true}) {
          std::fill(to.begin(), to.end(), std::byte{0});
          copy(to.data() + to_offset + 1, from.data() + from_offset, bytes, streaming);
          ASSERT_EQ(std::memcmp(to.data() + to_offset + 1, from.data() + from_offset, bytes), 0);
          ASSERT_EQ(to[to_offset], std::byte{0});
          ASSERT_EQ(to[to_offset + 1 + bytes], std::byte{0});
        }
      }
    }
  }
}

}  // namespace
}  // namespace trestle
