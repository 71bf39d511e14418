// Pieces of reports: formatted as by printf, and times. Pure, any thread.
#pragma once

#include <cstdio>
#include <string>

namespace trestle {

template <class... Values>
std::string line(const char* format, Values... values) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, format, values...);
  if (length < static_cast<int>(sizeof text)) return text;
  std::string longer(static_cast<size_t>(length), '\0');  // the terminating zero takes the last byte
  std::snprintf(longer.data(), longer.size() + 1, format, values...);
  return longer;
}

// "812 ns", "1.25 us", "20.4 ms", "3.1 s".
inline std::string time_text(double time_ns) {
  char text[48];
  if (time_ns < 1e3) {
    std::snprintf(text, sizeof text, "%.0f ns", time_ns);
  } else if (time_ns < 1e6) {
    std::snprintf(text, sizeof text, "%.4g us", time_ns / 1e3);
  } else if (time_ns < 1e9) {
    std::snprintf(text, sizeof text, "%.4g ms", time_ns / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.4g s", time_ns / 1e9);
  }
  return text;
}

}  // namespace trestle
