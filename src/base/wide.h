// Wide: products of two 64-bit numbers, exactly.
#pragma once

namespace trestle {

using Wide = unsigned __int128;

}  // namespace trestle
