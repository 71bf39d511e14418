#include <sodium.h>

#include "base/check.h"
#include "base/fork.h"
#include "transport/auth/crypto.h"

namespace trestle {
namespace {

void start_sodium() {
  static constinit PerProcess<const int> started;
  const auto init = [] {
    const NoFork whole;  // sodium_init holds a lock, which would stay locked in a forked child
    return sodium_init();
  };
  CHECK(started.get(init) >= 0, "libsodium could not be initialised");  // 1: it was initialised before
}

const unsigned char* raw(std::span<const std::byte> data) {
  return reinterpret_cast<const unsigned char*>(data.data());
}

}  // namespace

bool crypto_built() {
  return true;
}

Hash32 keyed_hash(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts) {
  start_sodium();
  crypto_generichash_state state;
  Hash32 out;
  crypto_generichash_init(&state, key.empty() ? nullptr : raw(key), key.size(), out.size());
  for (const auto& part : parts) crypto_generichash_update(&state, raw(part), part.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(out.data()), out.size());
  sodium_memzero(&state, sizeof state);
  return out;
}

void random_bytes(std::span<std::byte> out) {
  start_sodium();
  randombytes_buf(out.data(), out.size());
}

bool equal_secrets(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::byte> data) {
  sodium_memzero(data.data(), data.size());
}

}  // namespace trestle
