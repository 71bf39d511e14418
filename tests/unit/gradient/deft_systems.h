// Systems that DeFT is tested on. Test support.
#pragma once

#include <gtest/gtest.h>

#include "base/rng.h"
#include "gradient/deft_buckets.h"

namespace trestle {

inline std::vector<DeftLink> one_link() {
  return {DeftLink{}};
}

inline std::vector<DeftLink> two_links() {
  return {DeftLink{}, DeftLink{kGlooSlowdownPermille}};
}

// Up to eight buckets and three links. The forward pass takes time.
inline DeftSystem random_deft_system(Rng& rng) {
  DeftSystem system;
  const uint64_t buckets = 1 + rng.below(8);
  const uint64_t most_comm = 1 + rng.below(400);
  for (uint64_t i = 0; i < buckets; ++i) {
    system.buckets.push_back({1 + rng.below(60), rng.below(120), rng.below(most_comm)});
  }
  system.links.push_back({});
  for (uint64_t i = rng.below(3); i > 0; --i) {
    system.links.push_back({static_cast<uint32_t>(1000 + rng.below(2000))});
  }
  return system;
}

template <class T>
T expect_value(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return std::move(result).value();
}

}  // namespace trestle
