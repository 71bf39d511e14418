// The log at INFO when a communicator is made: the chosen dimensions, and the reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "comm/communicator/communicator.h"
#include "support/log_lines.h"

namespace trestle {
namespace communicator_log_test {
namespace {

std::string logged(LogLevel level, uint32_t subsystems, const char* dims) {
  SettingsOverride wanted;
  wanted.dims = dims;
  const auto settings = make_settings(parse_config({{"TRESTLE_CALIBRATE", "off"}}), wanted);
  EXPECT_TRUE(settings.ok());
  const LogLines lines(level, subsystems);
  const auto made = Communicator::create_all(4, settings.value());
  const std::string text = lines.text();
  EXPECT_TRUE(made.ok());
  if (made.ok()) {
    for (const auto& rank : made.value()) rank->destroy(0);
  }
  return text;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(CommunicatorLog, TellsTheDimensionsOnce) {
  const std::string text = logged(LogLevel::kInfo, static_cast<uint32_t>(Subsystem::kInit), "2x2");
  EXPECT_EQ(count(text, "TRESTLE INFO dimension  size  kind"), 1u) << text;
  EXPECT_EQ(count(text, "TRESTLE INFO 1          2     switch"), 1u) << text;
  EXPECT_EQ(count(text, "TRESTLE INFO 2          2     switch"), 1u) << text;
  EXPECT_EQ(count(text, "4 ranks; why: dimensions 2x2 as configured"), 1u) << text;
}

TEST(CommunicatorLog, TellsWhyThereAreNoneThatWereAskedFor) {
  const std::string text = logged(LogLevel::kInfo, kAllSubsystems, "");
  EXPECT_EQ(count(text, "4 ranks; why: "), 1u) << text;
  EXPECT_EQ(count(text, "ranks per host x hosts"), 1u) << text;
}

TEST(CommunicatorLog, TellsNothingAtWarnOrOfOtherSubsystems) {
  EXPECT_EQ(count(logged(LogLevel::kWarn, kAllSubsystems, "2x2"), "dimension"), 0u);
  EXPECT_EQ(count(logged(LogLevel::kInfo, static_cast<uint32_t>(Subsystem::kNet), "2x2"), "dimension"), 0u);
}

}  // namespace
}  // namespace communicator_log_test
}  // namespace trestle
