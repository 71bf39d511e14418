// Formats one piece of a report like printf. Pure, any thread.
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

}  // namespace trestle
