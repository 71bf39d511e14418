// The files of src/gradient/workloads as CMake compiled them in. Constants, any thread. Others use networks.h.
#pragma once

#include <span>
#include <string_view>

namespace trestle {

struct NetworkText {
  std::string_view name;
  std::string_view text;  // "# what it is", then per tensor in forward order "name elements work"
};

std::span<const NetworkText> network_texts();

}  // namespace trestle
