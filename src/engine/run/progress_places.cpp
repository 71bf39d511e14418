#include "engine/run/progress_places.h"

#include <algorithm>

#include "base/cpu/numa.h"

namespace trestle {

namespace {

constexpr size_t kMostByNode = 8;

std::optional<size_t> helper_of_node(const ProgressPlaces& places, int node) {
  for (size_t i = 0; i < places.nodes.size(); ++i) {
    if (std::ranges::binary_search(places.nodes[i], node)) return i;
  }
  return std::nullopt;
}

// The helper that is bound to all of these processors.
std::optional<size_t> helper_at(const ProgressPlaces& places, const std::vector<int>& processors) {
  for (size_t i = 0; i < places.processors.size(); ++i) {
    if (!processors.empty() && std::ranges::includes(places.processors[i], processors)) return i;
  }
  return std::nullopt;
}

}  // namespace

ProgressPlaces choose_progress_places(int64_t wanted, const std::string& folder, const std::vector<uint64_t>& mask) {
  if (wanted > 0) return {std::vector<std::vector<int>>(static_cast<size_t>(wanted)), "TRESTLE_PROGRESS_THREADS"};
  const auto nodes = numa_nodes(folder, mask);
  if (!nodes.ok()) return {{{}}, "the NUMA nodes are not known: " + nodes.error().message};
  const size_t count = nodes.value().size();
  // A helper that is the only one runs wherever the process may.
  if (count == 0) return {{{}}, "no NUMA node is known"};
  if (count == 1) return {{{}}, "the process runs on one NUMA node", {{nodes.value()[0].number}}};
  const size_t threads = std::min(count, kMostByNode);
  ProgressPlaces places{std::vector<std::vector<int>>(threads), "one for each NUMA node",
                        std::vector<std::vector<int>>(threads)};
  if (threads < count) places.why = "they share " + std::to_string(count) + " NUMA nodes";
  for (size_t i = 0; i < count; ++i) {
    const size_t thread = i * threads / count;
    places.nodes[thread].push_back(nodes.value()[i].number);
    std::vector<int>& processors = places.processors[thread];
    processors.insert(processors.end(), nodes.value()[i].processors.begin(), nodes.value()[i].processors.end());
    std::sort(processors.begin(), processors.end());
  }
  return places;
}

HelperChoice choose_helper(const ProgressPlaces& places, const RankSite& site) {
  const std::optional<size_t> near_rails = helper_of_node(places, site.rails_node);
  const std::optional<size_t> bound = helper_at(places, site.usable);
  std::string why;
  if (site.rails_node >= 0 && !places.nodes.empty()) {
    why = "its rails are at NUMA node " + std::to_string(site.rails_node);
    if (!near_rails) why += ", where this process may not run";
    if (near_rails && bound && bound != near_rails) why += ", but the rank is bound elsewhere";
  }
  if (bound) return {bound, why};
  if (near_rails) return {near_rails, why};
  return {helper_at(places, {site.processor}), why};
}

}  // namespace trestle
