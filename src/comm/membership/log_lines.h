// Logs a text of several lines. Any thread. For callers that have checked that the message is on.
#pragma once

#include <algorithm>
#include <string>

#include "base/log.h"

namespace trestle {

// One message at INFO per line of the text.
inline void log_lines(const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    log_message(LogLevel::kInfo, "%s", text.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
}

}  // namespace trestle
