// Rng: a small seeded generator (splitmix64) with the same sequence on every host. For tests, fault plans and jitter;
// not for secrets.
//
// Value type, one thread. Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014), figure 15.
#pragma once

#include <cstdint>

#include "base/hash.h"

namespace trestle {

class Rng {
 public:
  explicit constexpr Rng(uint64_t seed) : state_(seed) {}
  constexpr uint64_t next() { return splitmix64_mix(state_ += 0x9e3779b97f4a7c15u); }
  // Uniform in [0, limit); 0 if limit is 0. Takes the high half of a 128-bit product: bias below limit / 2^64.
  constexpr uint64_t below(uint64_t limit) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }
  // Uniform in [0, 1), 53 random bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace trestle
