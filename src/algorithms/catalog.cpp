#include "algorithms/catalog.h"

#include <string>
#include <vector>

#include "algorithms/rows.h"
#include "base/fork.h"
#include "base/text/names.h"
#include "base/text/value_text.h"
#include "plan/checker.h"

namespace trestle {

std::span<const Algorithm> algorithms() {
  // The order decides ties of predicted time.
  static constinit PerProcess<const std::vector<Algorithm>> table;
  return table.get([] {
    return std::vector<Algorithm>{
        kRing,               // ring
        kDirect,             // direct
        kHalvingDoubling,    // hd
        kRecursiveDoubling,  // rd
        kBinaryTree,         // tree
        kDoubleBinaryTree,   // dbtree
        kBinomialTree,       // binomial
        kBruck,              // bruck
        kDissemination,      // dissemination
        kChain,              // chain
        kRabenseifner,       // rabenseifner
        kOrderedTree,        // otree
        kLine,               // line
        kPairwise,           // pairwise
    };
  });
}

namespace {

template <class Predicate>
std::string names_where(Predicate&& predicate) {
  std::string names;
  for (const Algorithm& row : algorithms()) {
    if (!predicate(row)) continue;
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names.empty() ? "none" : names;
}

// The plans of all ranks for the same request; the other end of a send is a recv.
std::vector<Plan> build_group(const Algorithm& algorithm, PlanRequest request) {
  std::vector<Plan> plans;
  const bool pair = request.kind == PhaseKind::kSend || request.kind == PhaseKind::kRecv;
  for (request.me = 0; request.me < request.group_size; ++request.me) {
    if (pair) request.kind = request.me == 0 ? PhaseKind::kSend : PhaseKind::kRecv;
    plans.push_back(algorithm.build(request));
  }
  return plans;
}

}  // namespace

Result<const Algorithm*> find_algorithm(std::string_view name) {
  return row_named(algorithms(), name, "an algorithm");
}

Result<Plan> build_plan(const Algorithm& algorithm, const PlanRequest& request, bool check) {
  if (request.group_size < 1 || request.me < 0 || request.me >= request.group_size) {
    return invalid_argument("index " + std::to_string(request.me) + " is not in a group of " +
                            std::to_string(request.group_size));
  }
  if (request.root < 0 || request.root >= request.group_size) {
    return invalid_argument("root " + std::to_string(request.root) + " is not in a group of " +
                            std::to_string(request.group_size));
  }
  if (!algorithm.serves(request.kind, request.group_size)) {
    return invalid_argument("algorithm " + std::string(algorithm.name) + " has no " + to_string(request.kind) +
                            " for a group of " + std::to_string(request.group_size) +
                            "; those that have: " + names_where([&](const Algorithm& row) {
                              return row.serves(request.kind, request.group_size);
                            }));
  }
  const bool wrong_end =
      (request.kind == PhaseKind::kSend && request.me != 0) || (request.kind == PhaseKind::kRecv && request.me != 1);
  if (wrong_end) return invalid_argument("in a pair, index 0 sends and index 1 receives");
  if (check) {
    const bool rank_order = keeps_rank_order(algorithm, request.kind, request.group_size);
    TRY(check_plans(build_group(algorithm, request), rank_order ? SumOrder::kOfRanks : SumOrder::kAny));
  }
  return algorithm.build(request);
}

}  // namespace trestle
