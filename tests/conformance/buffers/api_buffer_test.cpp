// Buffers notice every wrong byte: of images, of what lies between them, and of the guards.
#include "conformance/buffers/api_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "conformance/buffers/api_values.h"

namespace api {
namespace {

// Flips a bit of every byte in turn.
void expect_all_noticed(Buffer& buffer, size_t bytes, size_t offset) {
  ASSERT_EQ(buffer.difference(), "");
  const auto before = static_cast<std::ptrdiff_t>(Buffer::kGuardBytes + offset);
  const auto behind = static_cast<std::ptrdiff_t>(bytes + Buffer::kGuardBytes);
  for (std::ptrdiff_t at = -before; at < behind; ++at) {
    const std::byte bit{static_cast<uint8_t>(1u << (at & 7))};
    buffer.data()[at] ^= bit;
    EXPECT_NE(buffer.difference().find("offset " + std::to_string(at) + " of"), std::string::npos)
        << at << ": " << buffer.difference();
    buffer.data()[at] ^= bit;
  }
  EXPECT_EQ(buffer.difference(), "");
}

TEST(ApiBuffer, NoticesEveryByte) {
  const Image image = image_of_bits(trestleUint8, 5, 1, 0, 100);
  for (const size_t offset : {0, 1, 3, 8, 13}) {
    Buffer plain(45, offset, false, 7);
    expect_all_noticed(plain, 45, offset);
    // Unaligned pieces with gaps, one right behind another.
    Buffer pieces(300, offset, false, 8,
                  {{.at = 201, .image = image.part(1, 50)},
                   {.at = 5, .image = image},
                   {.at = 105, .image = image.part(0, 3)},
                   {.at = 120, .image = image.part(50, 1)}});
    expect_all_noticed(pieces, 300, offset);
  }
}

TEST(ApiBuffer, ResultReplacesTheMiddleOfWhatWasSent) {
  const Image sent = image_of_input(trestleFloat32, trestleSum, 5, 0, 2, 30);
  const Image result = image_of_result(trestleFloat32, trestleSum, 5, 2, 10, 10);
  Buffer buffer(120, 4, false, 9, {{.at = 0, .image = sent}});
  EXPECT_EQ(buffer.difference(), "");
  buffer.expect({.at = 40, .image = result, .type = trestleFloat32});
  EXPECT_NE(buffer.difference(), "") << "the result is not there yet";
  std::copy_n(result.data(), result.bytes(), buffer.data() + 40);
  expect_all_noticed(buffer, 120, 4);
  buffer.spoil();
  EXPECT_NE(buffer.difference().find("offset 0 of"), std::string::npos);
}

TEST(ApiBuffer, NoticesMissingResults) {
  const Image image = image_of_bits(trestleInt32, 5, 1, 0, 10);
  Buffer buffer(40, 0, false, 9);
  buffer.expect({.at = 0, .image = image});
  EXPECT_NE(buffer.difference().find("offset 0 of"), std::string::npos);
  std::copy_n(image.data(), 36, buffer.data());
  EXPECT_NE(buffer.difference().find("offset 3"), std::string::npos) << buffer.difference();
}

TEST(ApiBuffer, AveragesMayBeTwoUnitsOff) {
  constexpr size_t kCount = 9;
  const Image image = image_of_result(trestleFloat32, trestleAvg, 5, 3, 0, kCount);
  Buffer buffer(sizeof(float) * kCount, 0, false, 9);
  buffer.expect({0, image, trestleFloat32, tolerance(trestleFloat32, trestleAvg)});
  for (const uint64_t units : {0, 2, 3}) {
    for (size_t i = 0; i < kCount; ++i) {
      store(trestleFloat32, buffer.data(), i, load(trestleFloat32, image.data(), i) + (i == 4 ? units : 0));
    }
    EXPECT_EQ(buffer.difference().empty(), units <= 2) << buffer.difference();
  }
}

}  // namespace
}  // namespace api
