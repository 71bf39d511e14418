#include "sched/model/algorithm_choice.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {

bool ReduceDemands::met_by(const Algorithm& row, PhaseKind kind, int32_t group_size) const {
  if (rank_order && !keeps_rank_order(row, kind, group_size)) return false;
  return most_sources == 0 || trestle::most_sources(row, kind, group_size) <= most_sources;
}

std::vector<uint16_t> AlgorithmChoice::allowed(PhaseKind kind, uint8_t dimension) const {
  if (const auto fixed = model_.fixed_algorithm(PhaseChoice{dimension, kind, 0})) return {*fixed};
  const auto rows = algorithms();
  const int32_t size = group_size(model_.topology(), PhaseChoice{dimension, kind, 0});
  const auto serves = [&](uint16_t algorithm) {
    return rows[algorithm].serves(kind, size) && demands_.met_by(rows[algorithm], kind, size);
  };
  if (rule_ != nullptr && !rule_->exclude) {
    const std::vector<uint16_t>& names = rule_->algorithms;
    if (dimension != kFlat) {
      const uint16_t named = names[std::min<size_t>(dimension, names.size() - 1)];
      return serves(named) ? std::vector<uint16_t>{named} : std::vector<uint16_t>{};
    }
    const auto found = std::ranges::find_if(names, serves);
    return found != names.end() ? std::vector<uint16_t>{*found} : std::vector<uint16_t>{};
  }
  std::vector<uint16_t> result;
  for (uint16_t a = 0; a < rows.size(); ++a) {
    const bool excluded = rule_ != nullptr && std::ranges::find(rule_->algorithms, a) != rule_->algorithms.end();
    const auto same_plans = [&](uint16_t other) { return rows[other].build == rows[a].build; };
    if (!excluded && serves(a) && std::ranges::none_of(result, same_plans)) result.push_back(a);
  }
  return result;
}

PhaseChoice AlgorithmChoice::cheapest(PhaseKind kind, uint8_t dimension, PhaseBytes bytes) {
  const std::vector<uint16_t> candidates = allowed(kind, dimension);
  CHECK(!candidates.empty(), "no algorithm may serve a phase");
  PhaseChoice best{dimension, kind, candidates[0]};
  uint64_t best_ticks = model_.alone_ticks(best, bytes);
  for (const uint16_t algorithm : candidates) {
    const PhaseChoice choice{dimension, kind, algorithm};
    const uint64_t cost_ticks = model_.alone_ticks(choice, bytes);
    if (cost_ticks >= best_ticks) continue;
    best = choice;
    best_ticks = cost_ticks;
  }
  return best;
}

std::string serving_all(const std::vector<PhaseKind>& kinds, int32_t size, const ReduceDemands& demands) {
  std::string names;
  for (const Algorithm& row : algorithms()) {
    const auto serves = [&](PhaseKind kind) { return row.serves(kind, size) && demands.met_by(row, kind, size); };
    if (std::ranges::all_of(kinds, serves)) names.append(" ").append(row.name);
  }
  return names;
}

std::string serving_any(const std::vector<PhaseKind>& kinds, int32_t size, const ReduceDemands& demands) {
  std::string names;
  for (const Algorithm& row : algorithms()) {
    const auto serves = [&](PhaseKind kind) { return row.serves(kind, size) && demands.met_by(row, kind, size); };
    if (std::ranges::any_of(kinds, serves)) names.append(" ").append(row.name);
  }
  return names;
}

}  // namespace trestle
