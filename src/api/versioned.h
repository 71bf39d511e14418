// Structs of callers, which grow from version to version: `size` says how much of one the caller knows. Pure, any
// thread. Used by src/api only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/result.h"

namespace trestle {

inline constexpr size_t kMostStructSize = size_t{1} << 16;

// Whether the caller's struct is long enough to hold the field.
template <class T, class F>
bool covers(const T& object, const F& field) {
  return reinterpret_cast<const char*>(&field) + sizeof field <= reinterpret_cast<const char*>(&object) + object.size;
}

// Whether the struct begins as its initializer makes it. `head`: bytes that all versions have. Sentences begin with
// `in`: "CommGetStats: ", "config.".
template <class T>
Status check_head(const std::string& in, const T& object, size_t head, unsigned magic, const char* initializer) {
  const std::string from = std::string(": start from ") + initializer + ", which sets size, magic and version";
  if (object.size < head || object.size > kMostStructSize)
    return invalid_argument(in + "size is " + std::to_string(object.size) + from);
  if (object.magic != magic) return invalid_argument(in + "magic is wrong" + from);
  return {};
}

// Writes what the caller knows of `all`, but for its head.
template <class T>
void copy_known(T& to, const T& all, size_t head) {
  const size_t known = std::min(to.size, sizeof all);
  std::memcpy(reinterpret_cast<char*>(&to) + head, reinterpret_cast<const char*>(&all) + head, known - head);
}

}  // namespace trestle
