// Multiplication by one number gives the same bits as the product with copies of it, for any length, place and type.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/rng.h"
#include "kernels/reduce.h"
#include "kernels/scale.h"

namespace trestle {
namespace {

std::vector<std::byte> random_bytes(Rng& rng, size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(rng.below(256));
  return result;
}

TEST(Scale, IsTheProductWithCopiesOfTheNumber) {
  Rng rng(3);
  for (size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    const size_t bytes = size_of(type);
    for (const size_t elements : {size_t{0}, size_t{1}, size_t{7}, 4096 / bytes, 4096 / bytes + 1, size_t{10'000}}) {
      const size_t shift = rng.below(9);
      std::vector<std::byte> from = random_bytes(rng, elements * bytes + shift);
      std::vector<std::byte> scalar = random_bytes(rng, bytes);
      scalar.back() = std::byte{0x3f};  // no NaN in any type, because the result of two NaNs is unspecified
      std::vector<std::byte> copies(elements * bytes), expected(elements * bytes), got(elements * bytes);
      for (size_t i = 0; i < elements; ++i) std::memcpy(copies.data() + i * bytes, scalar.data(), bytes);
      const std::byte* const sources[] = {from.data() + shift, copies.data()};
      reduce(expected.data(), sources, elements, {type, ReduceOp::kProd, 0, false});
      scale(got.data(), from.data() + shift, elements, type, scalar.data());
      EXPECT_EQ(got, expected) << to_string(type) << " " << elements;
      scale(from.data() + shift, from.data() + shift, elements, type, scalar.data());
      if (elements != 0) {
        EXPECT_EQ(std::memcmp(from.data() + shift, expected.data(), elements * bytes), 0) << to_string(type);
      }
    }
  }
}

}  // namespace
}  // namespace trestle
