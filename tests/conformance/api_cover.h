// Selects test cases from a product of factors so that every pair of values of any two factors occurs. Pure and seeded.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "support/ranks.h"

namespace api {

using Choice = std::vector<int>;  // one value per factor

// Of so many communicators the first ones that this run of the tests tries: all of them, or a TESTS_PART-th.
int tried_of(int communicators);

class Cover {
 public:
  // sizes: the number of values of each factor. allowed: whether a combination makes sense.
  Cover(std::vector<int> sizes, std::function<bool(const Choice&)> allowed, uint64_t seed);

  // The best of some random choices whose first factors equal `fixed`. Its pairs then count as covered.
  Choice next(const Choice& fixed);
  // The number of pairs among factors first..last-1 that occurred in no choice although an allowed choice has them.
  size_t missing(size_t first, size_t last);

 private:
  uint64_t key(size_t a, int value_a, size_t b, int value_b) const;
  size_t gain(const Choice& choice) const;
  bool draw(Choice& choice, size_t fixed);

  const std::vector<int> sizes_;
  const std::function<bool(const Choice&)> allowed_;
  ranks::Random random_;
  std::set<uint64_t> covered_;
};

}  // namespace api
