// Which collective sends sparse gradients in the least time. Pure, any thread.
//
// FLEX: "Flexible Communication for Optimal Distributed Learning over Unpredictable Networks" (arXiv 2312.02493). Times
// are seconds, sizes bytes. In the paper values and indices take four bytes each, so M c bytes of values travel with M
// c bytes of indices; values of eight bytes have half as many (index_share). The logarithm of the number of workers is
// real.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trestle {

inline constexpr double kBytesPerGigabit = 1.25e8;

struct SparseExchange {
  double bytes = 0;        // M, of the whole gradient
  double ratio = 1;        // c, the part that is sent
  uint32_t workers = 1;    // N
  double startup_s = 0;    // alpha
  double per_byte_s = 0;   // beta
  double index_share = 1;  // bytes of an index, in units of a value's
};

// An exchange of a gradient of so many elements: all of them are sent, over links that cost nothing.
SparseExchange sparse_exchange(double elements, size_t value_bytes, uint32_t workers);

// In order of preference: the first of equal costs is chosen.
enum class SparseCollective : uint8_t {
  kRing = 0,       // AR-Topk: broadcast of the root's indices, ring all-reduce of the values
  kTree = 1,       // AR-Topk with a tree all-reduce
  kAllGather = 2,  // each worker's own values and indices
};
const char* to_string(SparseCollective collective);

// Table I and equations 4a, 4b. One worker exchanges nothing, in no time.
struct SparseCosts {
  double ring_s = 0;
  double tree_s = 0;
  double all_gather_s = 0;
  double of(SparseCollective collective) const;
};
SparseCosts sparse_costs(const SparseExchange& exchange);

// The least cost.
SparseCollective cheapest(const SparseCosts& costs);

// Rules 5a to 5c: alpha against M c beta with a factor that only N decides. A rule holds in a tie too, because the
// collective before it in SparseCollective wins ties.
struct SparseRules {
  bool ring_beats_tree = false;        // 5a; divides by zero for N <= 2, where the startups are equal and ring wins
  bool ring_beats_all_gather = false;  // 5b
  bool tree_beats_all_gather = false;  // 5c; of values of four bytes: at N = 4 only without startups, below never
};
SparseRules sparse_rules(const SparseExchange& exchange);

// The collective that the rules name: cheapest() without the costs.
SparseCollective chosen_by(const SparseRules& rules);

}  // namespace trestle
