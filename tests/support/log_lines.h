// LogLines: what this process logs while the object lives. One at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "local/temporary_folder.h"

namespace trestle {

class LogLines {
 public:
  explicit LogLines(LogLevel level, uint32_t subsystems = 0) {
    EXPECT_TRUE(configure_log({level, subsystems, folder_.path("log")}).ok());
  }
  ~LogLines() { EXPECT_TRUE(configure_log({LogLevel::kNone, 0, ""}).ok()); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  std::string text() const { return folder_.content("log"); }
  // The lines with all these parts.
  std::vector<std::string> with(const std::vector<std::string>& parts) const {
    std::vector<std::string> found;
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);) {
      const auto has = [&line](const std::string& part) { return line.find(part) != std::string::npos; };
      if (std::all_of(parts.begin(), parts.end(), has)) found.push_back(line);
    }
    return found;
  }

 private:
  const TemporaryFolder folder_;
};

}  // namespace trestle
