// The rows of the catalog, each defined in the file of its algorithm, and functions that all of them share. Constants
// and pure functions, any thread; src/algorithms only.
#pragma once

#include <cstdint>

#include "algorithms/catalog.h"
#include "plan/builder.h"

namespace trestle {

extern const Algorithm kRing;               // ring.cpp
extern const Algorithm kChain;              // ring.cpp
extern const Algorithm kDirect;             // direct.cpp
extern const Algorithm kHalvingDoubling;    // halving_doubling.cpp
extern const Algorithm kRecursiveDoubling;  // recursive_doubling.cpp
extern const Algorithm kBinaryTree;         // binary_tree.cpp
extern const Algorithm kDoubleBinaryTree;   // double_binary_tree.cpp
extern const Algorithm kBinomialTree;       // binomial_tree.cpp
extern const Algorithm kBruck;              // bruck.cpp
extern const Algorithm kDissemination;      // dissemination.cpp
extern const Algorithm kRabenseifner;       // rabenseifner.cpp
extern const Algorithm kOrderedTree;        // ordered_tree.cpp
extern const Algorithm kLine;               // line.cpp
extern const Algorithm kPairwise;           // pairwise.cpp

// The plan of a group of one, for any kind but send and recv: copies input 0 to output 0. In place it has no steps.
Plan build_alone(const PlanRequest& request);

// (me + distance) modulo the group size; distance may be negative, down to -2 * group_size.
inline int32_t neighbour(const PlanRequest& request, int32_t distance) {
  return (request.me + distance + 2 * request.group_size) % request.group_size;
}

inline uint32_t block_of(int32_t rank) {
  return static_cast<uint32_t>(rank);
}

}  // namespace trestle
