// What the traffic of a communicator says about the calibration that it uses.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "comm/setup/calibration.h"

namespace trestle {
namespace calibration_traffic_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kEager = 16 * 1024;

class CalibrationTraffic : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(configure_log({}).ok());
    used_.measured.dimensions.resize(2);
    for (Dimension& dimension : used_.measured.dimensions) {
      dimension.size = 2;
      dimension.bandwidth_mbps = 1000;
      dimension.latency_ns = 1;
    }
    used_.path = ::testing::TempDir() + "traffic-" + std::to_string(getpid()) + ".calibration";
    used_.made_s = 1'795'868'444;
  }
  void TearDown() override {
    std::filesystem::remove(used_.path);
    EXPECT_TRUE(configure_log({LogLevel::kNone, 0, ""}).ok());
  }

  // Whether the file is there after data came so in the second dimension.
  bool stays(const DimensionCounts& came, int64_t made_s) {
    CalibrationOrigin origin = calibration_origin({{"a", "a", 1}}, 1);
    origin.made_s = made_s;
    EXPECT_TRUE(write_calibration(used_.path, 1, origin, used_.measured).ok());
    std::array<DimensionCounts, kMaxDimensions> all;
    all[1] = came;
    forget_if_slower_than_data(used_, all, kEager);
    return std::filesystem::exists(used_.path);
  }
  bool stays(const DimensionCounts& came) { return stays(came, used_.made_s); }

  UsedCalibration used_;
};

// So many bytes in so many messages, within the time that 4 Gb/s need for them but for a permille.
DimensionCounts fast(uint64_t bytes, uint64_t messages) {
  return {.bytes_received = bytes, .messages_received = messages, .busy_ns = (bytes - messages * kEager) * 1998 / 1000};
}

TEST_F(CalibrationTraffic, FarTooLowFiguresAreForgotten) {
  DimensionCounts came = fast(128 * kMiB, 512);
  EXPECT_FALSE(stays(came));
  EXPECT_TRUE(stays(came, used_.made_s + 1)) << "another one, made meanwhile";
  came.busy_ns = came.busy_ns * 1003 / 1000;
  EXPECT_TRUE(stays(came)) << "less than four times as fast";
}

// Communicators share a file, and each warns of it.
TEST_F(CalibrationTraffic, WarningsComeOnceAndOnlyOfWhatWasRemovedHere) {
  std::array<DimensionCounts, kMaxDimensions> all;
  all[1] = fast(128 * kMiB, 512);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(stays(all[1], used_.made_s + 2));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "another one has replaced it";
  ++used_.made_s;  // nothing was said of this one
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(stays(all[1]));
    forget_if_slower_than_data(used_, all, kEager);
    warn_of(used_, "wrong figures");
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 2) << said;
  EXPECT_NE(said.find(" is dropped: "), std::string::npos) << said;
  EXPECT_NE(said.find(" is not used: it has wrong figures"), std::string::npos) << said;
}

// A folder that the user has named is another matter. Root may read everything, so a child gives that up.
TEST_F(CalibrationTraffic, AHomeOfAnotherUserIsNoWarning) {
  char folder[] = "/tmp/trestle-test-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  ASSERT_EQ(chmod(folder, 0), 0);
  const auto said = [&](bool chosen) {
    CalibrationPlace place;
    place.wanted = true;
    place.chosen = chosen;
    place.path = std::string(folder) + "/0123456789abcdef.calibration";
    EXPECT_EXIT(
        {
          if (getuid() == 0 && setuid(65534) != 0) _exit(3);
          _exit(kept_calibration(place, used_.measured) ? 2 : 0);
        },
        ::testing::ExitedWithCode(0), chosen ? "calibration ignored: .*Permission denied" : "^$");
  };
  said(false);
  said(true);
  rmdir(folder);
}

TEST_F(CalibrationTraffic, LittleDataSaysNothing) {
  EXPECT_TRUE(stays({}));
  EXPECT_TRUE(stays(fast(64 * kMiB, 1)));
  EXPECT_TRUE(stays({.bytes_received = 128 * kMiB, .messages_received = 2, .busy_ns = 0}));
}

// Short messages may have waited here before this rank asked for them.
TEST_F(CalibrationTraffic, EagerDataSaysNothing) {
  EXPECT_TRUE(stays({.bytes_received = 1024 * kMiB, .messages_received = 1024 * kMiB / kEager, .busy_ns = 1'000}));
  EXPECT_TRUE(stays({.bytes_received = 1024 * kMiB, .messages_received = 1024 * kMiB / kEager * 2, .busy_ns = 1'000}));
}

}  // namespace
}  // namespace calibration_traffic_test
}  // namespace trestle
