// Displaced: a copy of elements at an address that is aligned for none of their types, as a program's memory may be.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

namespace trestle {

template <class T>
class Displaced {
 public:
  Displaced(const T* values, size_t count) : bytes_(1 + count * sizeof(T)) {
    if (count > 0) std::memcpy(data(), values, count * sizeof(T));
  }
  std::byte* data() { return bytes_.data() + 1; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace trestle
