#include "gradient/deft/place.h"

#include <algorithm>
#include <numeric>

namespace trestle {

DeftPlaced deft_place(std::span<const DeftItem> items, std::span<const uint32_t> ids,
                      std::span<const uint64_t> capacities_us) {
  std::vector<uint32_t> order(ids.begin(), ids.end());
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return items[a].comm_us != items[b].comm_us ? items[a].comm_us > items[b].comm_us : a > b;
  });
  std::vector<uint32_t> links(capacities_us.size());
  std::iota(links.begin(), links.end(), 0);
  std::stable_sort(links.begin(), links.end(),
                   [&](uint32_t a, uint32_t b) { return capacities_us[a] < capacities_us[b]; });
  DeftPlaced placed{DeftSends(links.size()), {capacities_us.begin(), capacities_us.end()}};
  for (const uint32_t id : order) {
    for (const uint32_t link : links) {
      if (items[id].comm_us > placed.left_us[link]) continue;
      placed.left_us[link] -= items[id].comm_us;
      placed.sends[link].push_back(id);
      break;
    }
  }
  return placed;
}

}  // namespace trestle
