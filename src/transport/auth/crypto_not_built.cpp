// Replaces crypto_sodium.cpp where libsodium was not found: nothing can be proved, so nothing is accepted.
#include <algorithm>

#include "transport/auth/crypto.h"

namespace trestle {

bool crypto_built() {
  return false;
}

Hash32 keyed_hash(std::span<const std::byte>, std::initializer_list<std::span<const std::byte>>) {
  return {};
}

void random_bytes(std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
}

bool equal_secrets(std::span<const std::byte>, std::span<const std::byte>) {
  return false;
}

void wipe(std::span<std::byte> data) {
  std::fill(data.begin(), data.end(), std::byte{0});
}

}  // namespace trestle
