// TRESTLE_DIMS and TRESTLE_TRANSPORT, as "<dims>\n<transport>\n<ranks per host as digits>". The result is either a
// topology of exactly these ranks or an error with a sentence.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text/value_text.h"
#include "topology/topology.h"

using namespace trestle;

namespace {

constexpr size_t kMostRanks = 64;

// Each digit is a host with so many ranks.
std::vector<RankPlace> places_of(const std::string& digits) {
  std::vector<RankPlace> places;
  for (size_t host = 0; host < digits.size(); ++host) {
    if (digits[host] < '0' || digits[host] > '9') continue;
    for (int i = digits[host] - '0'; i > 0 && places.size() < kMostRanks; --i) {
      places.push_back({"host" + std::to_string(host % 7), "id" + std::to_string(host % 7), places.size()});
    }
  }
  if (places.empty()) places.push_back({"host", "id", 0});
  return places;
}

void check_sizes(const std::string& text) {
  const Result<std::vector<int32_t>> sizes = parse_dims(text);
  if (!sizes.ok()) {
    CHECK(!sizes.error().message.empty(), "an error without a sentence");
    return;
  }
  std::string again;
  for (int32_t size : sizes.value()) {
    CHECK(size >= 1, "a size below one was accepted");
    again += (again.empty() ? "" : "x") + std::to_string(size);
  }
  const Result<std::vector<int32_t>> reread = parse_dims(again);
  CHECK(reread.ok() && reread.value() == sizes.value(), "writing and reading changed the sizes");
}

void check_topology(const Topology& topology, size_t ranks) {
  CHECK(static_cast<size_t>(topology.ranks()) == ranks, "a topology of other ranks than there are");
  for (uint8_t d = 0; d < topology.dimensions.size(); ++d) {
    for (int32_t rank = 0; rank < topology.ranks(); ++rank) {
      const std::vector<int32_t> group = topology.group(rank, d);
      CHECK(group.size() == static_cast<size_t>(topology.group_size(d)), "a group of another size");
      CHECK(group.at(topology.coordinate(rank, d)) == rank, "a rank is not where its coordinate says");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts = split(std::string(reinterpret_cast<const char*>(data), size), '\n');
  parts.resize(3);
  check_sizes(parts[0]);
  (void)parse_dimensions(parts[0]);
  const std::vector<RankPlace> places = places_of(parts[2]);
  const Result<Topology> chosen = choose_topology({parts[0], "", parts[1]}, places);
  if (chosen.ok()) {
    check_topology(chosen.value(), places.size());
  } else {
    CHECK(!chosen.error().message.empty(), "an error without a sentence");
  }
  return 0;
}
