// Random numbers from a seed: equal in all processes of a job and in all repetitions of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>

namespace torture {

inline uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
inline uint64_t mix(uint64_t a, uint64_t b) {
  return mix(mix(a) ^ (b * 0xd6e8feb86659fd93ull));
}
inline uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
  return mix(mix(a, b), c);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() { return state_ = mix(state_); }
  uint64_t below(uint64_t bound) { return next() % bound; }
  int from_to(int low, int high) { return low + static_cast<int>(below(static_cast<uint64_t>(high - low + 1))); }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(below(values.size())));
  }
  template <typename C>
  auto& in(C& values) {
    return values[below(values.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace torture
