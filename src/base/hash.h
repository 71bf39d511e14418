// Hasher: a 64-bit hash that is equal on every host, so that ranks can agree on values. Not for secrets or against
// attackers.
//
// Value type, one thread. FNV-1a over the bytes (Fowler, Noll, Vo; offset basis and prime of the 64-bit variant),
// finished with the mixer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014) so
// that every bit of the digest depends on every byte. Integers enter as 8 little-endian bytes, and strings with their
// length in front, so that ("ab","c") != ("a","bc").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace trestle {

constexpr uint64_t splitmix64_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Hasher {
 public:
  constexpr Hasher& integer(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) step(static_cast<uint8_t>(value >> shift));
    return *this;
  }
  constexpr Hasher& string(std::string_view text) {
    integer(text.size());
    for (char c : text) step(static_cast<uint8_t>(c));
    return *this;
  }
  constexpr Hasher& bytes(std::span<const std::byte> data) {
    integer(data.size());
    for (std::byte b : data) step(static_cast<uint8_t>(b));
    return *this;
  }
  constexpr uint64_t digest() const { return splitmix64_mix(state_); }

 private:
  constexpr void step(uint8_t byte) { state_ = (state_ ^ byte) * 0x100000001b3u; }
  uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace trestle
