// The functions that the handshake needs from a cryptographic library. libsodium is wrapped only here. Pure except
// random_bytes; any thread. Without libsodium, crypto_not_built.cpp replaces crypto_sodium.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace trestle {

bool crypto_built();

using Hash32 = std::array<std::byte, 32>;

// BLAKE2b-256 (RFC 7693) over the concatenation of `parts`; keyed when `key` is not empty (16..64 bytes).
Hash32 keyed_hash(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts);
void random_bytes(std::span<std::byte> out);
// Takes a time that does not depend on the contents.
bool equal_secrets(std::span<const std::byte> a, std::span<const std::byte> b);
void wipe(std::span<std::byte> data);

}  // namespace trestle
