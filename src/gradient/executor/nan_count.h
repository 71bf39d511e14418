// How many elements are not a number. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace trestle {

// 0 for integers. The memory needs no alignment.
uint64_t count_nans(const std::byte* data, uint64_t count, DataType type);

}  // namespace trestle
