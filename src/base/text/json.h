// JSON of nlohmann-json's: the only header that names the library, for targets that link it.
//
// Pure functions, any thread.
#pragma once

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace trestle {

using Json = nlohmann::ordered_json;  // members stay in the order in which they were added

template <class Items, class Write = std::identity>
Json json_list(const Items& items, Write write = {}) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(write(item));
  return list;
}

// Six digits after the point, three from 1000 on; a whole number if nothing is left behind it.
inline Json rounded(double value) {
  const double scale = std::fabs(value) < 1000 ? 1e6 : 1e3;
  const double near = std::round(value * scale) / scale;
  if (near == std::trunc(near) && std::fabs(near) < 1e15) return static_cast<int64_t>(near);
  return near;
}

// One line. Numbers that are not finite are null, bytes that are not UTF-8 a replacement character.
inline std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace trestle
