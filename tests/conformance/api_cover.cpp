#include "conformance/api_cover.h"

#include <cstdlib>
#include <utility>

namespace api {

int tried_of(int communicators) {
  const char* const part = std::getenv("TESTS_PART");
  return part == nullptr ? communicators : communicators / std::atoi(part);
}

Cover::Cover(std::vector<int> sizes, std::function<bool(const Choice&)> allowed, uint64_t seed)
    : sizes_(std::move(sizes)), allowed_(std::move(allowed)), random_{seed} {}

uint64_t Cover::key(size_t a, int value_a, size_t b, int value_b) const {
  return ((a * 64 + static_cast<uint64_t>(value_a)) * 64 + b) * 64 + static_cast<uint64_t>(value_b);
}

size_t Cover::gain(const Choice& choice) const {
  size_t count = 0;
  for (size_t a = 0; a < choice.size(); ++a) {
    for (size_t b = a + 1; b < choice.size(); ++b) count += covered_.contains(key(a, choice[a], b, choice[b])) ? 0 : 1;
  }
  return count;
}

bool Cover::draw(Choice& choice, size_t fixed) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    for (size_t f = fixed; f < sizes_.size(); ++f) {
      choice[f] = static_cast<int>(random_.below(static_cast<uint64_t>(sizes_[f])));
    }
    if (allowed_(choice)) return true;
  }
  return false;
}

Choice Cover::next(const Choice& fixed) {
  Choice best;
  size_t best_gain = 0;
  for (int attempt = 0; attempt < 30; ++attempt) {
    Choice choice = fixed;
    choice.resize(sizes_.size());
    if (!draw(choice, fixed.size())) continue;
    const size_t g = gain(choice);
    if (!best.empty() && g <= best_gain) continue;
    best = choice;
    best_gain = g;
  }
  for (size_t a = 0; a < best.size(); ++a) {
    for (size_t b = a + 1; b < best.size(); ++b) covered_.insert(key(a, best[a], b, best[b]));
  }
  return best;
}

size_t Cover::missing(size_t first, size_t last) {
  size_t count = 0;
  for (size_t a = first; a < last; ++a) {
    for (size_t b = a + 1; b < last; ++b) {
      for (int x = 0; x < sizes_[a]; ++x) {
        for (int y = 0; y < sizes_[b]; ++y) {
          if (covered_.contains(key(a, x, b, y))) continue;
          Choice choice(sizes_.size());
          bool possible = false;
          for (int attempt = 0; attempt < 200 && !possible; ++attempt) {
            for (size_t f = 0; f < sizes_.size(); ++f) {
              choice[f] = static_cast<int>(random_.below(static_cast<uint64_t>(sizes_[f])));
            }
            choice[a] = x;
            choice[b] = y;
            possible = allowed_(choice);
          }
          count += possible ? 1 : 0;
        }
      }
    }
  }
  return count;
}

}  // namespace api
