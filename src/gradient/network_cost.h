// What an all-reduce costs on a network of equal links, by algorithm (MG-WFBP, arXiv 1912.09268, table II), and its two
// halves (DeAR, arXiv 2302.12445, equations 3 and 4). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "gradient/workload.h"

namespace trestle {

enum class AllReduceAlgorithm : uint8_t {
  kBinaryTree,
  kRecursiveDoubling,
  kHalvingDoubling,
  // The row is lost in the stored text of the paper. It is remembered as beta + gamma per byte, which is below what any
  // all-reduce needs on full-duplex links. So this is 2 beta + gamma.
  kDoubleBinaryTree,
  kRing,
};

const char* to_string(AllReduceAlgorithm algorithm);
// Errors (kInvalidArgument) list the names: binary_tree, recursive_doubling, halving_doubling, double_binary_tree,
// ring.
Result<AllReduceAlgorithm> parse_all_reduce_algorithm(std::string_view name);

struct NetworkModel {
  double startup_s = 0;       // alpha: of a message between two workers
  double per_byte_s = 0;      // beta
  double sum_per_byte_s = 0;  // gamma: of adding a byte
  uint32_t workers = 1;       // at least 1; need not be a power of two: the logarithm is real
};

// One worker sends nothing: its cost is zero.
MessageCost all_reduce_cost(const NetworkModel& network, AllReduceAlgorithm algorithm);

// The all-reduce and its halves. The reduce-scatter gets half of the transfer and all of the adding, the all-gather the
// other half. For ring and halving_doubling this is exact. For the trees the halves are a reduce and a broadcast. For
// recursive_doubling it is an assumption, because that algorithm has no halves.
GradientLink network_link(const NetworkModel& network, AllReduceAlgorithm algorithm);

// A link known by the cost of an all-reduce alone: each half takes half of it.
GradientLink halved_link(MessageCost all_reduce);

}  // namespace trestle
