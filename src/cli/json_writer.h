// Writes JSON values as text. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trestle::json {

// At most three digits after the point (six for values below 1000), none for a whole number; null if it is not finite.
std::string number(double value);
// The shortest text that reads back as the same number; null if it is not finite.
std::string exact(double value);
std::string text(std::string_view value);
// The values must be JSON already.
std::string array(const std::vector<std::string>& values);
std::string object(const std::vector<std::pair<std::string, std::string>>& members);

template <class Items, class Write>
std::string array(const Items& items, Write write) {
  std::vector<std::string> values;
  for (const auto& item : items) values.push_back(write(item));
  return array(values);
}

}  // namespace trestle::json
