// The costs of one rank's routing with thousands of ranks: memory, and the number of examined pairs. The routing is
// made directly, without the other ranks.
//
// The operators below replace those of the whole program, so that all memory is counted.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "comm/setup/routing.h"

namespace {

size_t held = 0;  // bytes; only one thread allocates
size_t peak = 0;

void give_back(void* memory) noexcept {
  held -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = std::malloc(size != 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  held += malloc_usable_size(memory);
  peak = std::max(peak, held);
  return memory;
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}

namespace trestle {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

struct Shape {
  const char* name;
  const char* dims;
  const char* transport;
  int32_t ranks_per_host;
  // The last rank has its own host, so pairs differ and are routed one by one.
  bool uneven;
};
constexpr Shape kShapes[] = {{"hosts of 8", "", "auto", 8, false},
                             {"three dimensions", "8x8x64", "shm,tcp", 8, false},
                             {"one host", "4096", "auto", 4096, false},
                             {"uneven hosts", "", "auto", 8, true}};
constexpr int32_t kRanks = 4096;

std::vector<RankPlace> places_of(const Shape& shape, int32_t ranks) {
  std::vector<RankPlace> places(static_cast<size_t>(ranks));
  for (int32_t r = 0; r < ranks; ++r) {
    RankPlace& place = places[static_cast<size_t>(r)];
    place.hostname = "host" + std::to_string(r / shape.ranks_per_host);
    if (shape.uneven && r + 1 == ranks) place.hostname = "alone";
    place.host_id = place.hostname + " and a boot id of thirty-six characters";
    place.process_id = static_cast<uint64_t>(r);
  }
  return places;
}

// Everything that a communicator needs while it is made, and the longest group of a call.
struct Made {
  explicit Made(const Topology& topology, const std::vector<RankPlace>& places, int32_t rank, uint64_t* pairs)
      : routing(topology, whereabouts(places), 0) {
    routing.count_pairs(pairs);
    routes = routing.routes(rank);
    router.assign(routes.carrier_of.size(), nullptr);
    shares = routing.all_share_memory();
  }
  Routing routing;
  RankRoutes routes;
  std::vector<void*> router;  // as in the engine
  bool shares = false;
};

TEST(RoutingScale, OneRankOf4096TakesLessThanAMebibyte) {
  for (const Shape& shape : kShapes) {
    const std::vector<RankPlace> places = places_of(shape, kRanks);
    const Topology topology = choose_topology({shape.dims, "", shape.transport}, places).value();
    const size_t before = held;
    peak = held;
    uint64_t pairs = 0;
    const Made made(topology, places, 1234, &pairs);
    EXPECT_GT(held - before, kRanks * sizeof(void*)) << shape.name << ": nothing is counted";
    EXPECT_LT(held - before, kMiB / 4) << shape.name;
    EXPECT_LT(peak - before, kMiB) << shape.name << ", while it is made";
    EXPECT_EQ(made.shares, std::string_view(shape.name) == "one host");
    EXPECT_EQ(made.routes.carrier_of.size(), size_t{kRanks});
  }
}

TEST(RoutingScale, EveryPeerIsLookedAtOnce) {
  for (Shape shape : kShapes) {
    // These dimensions fit only one number of ranks.
    if (shape.dims[0] != '\0' && shape.dims[1] == 'x') continue;
    shape.dims = "";
    for (const int32_t ranks : {256, 1024, kRanks}) {
      const std::vector<RankPlace> places = places_of(shape, ranks);
      const Topology topology = choose_topology({shape.dims, "", shape.transport}, places).value();
      uint64_t pairs = 0;
      const Made made(topology, places, ranks / 3, &pairs);
      EXPECT_EQ(pairs, static_cast<uint64_t>(ranks)) << shape.name;
      // Preparing a call needs the group of all ranks.
      pairs = 0;
      EXPECT_GT(made.routing.group_segment_bytes(topology.group(0, kFlat)), 0u);
      EXPECT_LE(pairs, 2 * static_cast<uint64_t>(ranks)) << shape.name;
    }
  }
}

}  // namespace
}  // namespace trestle
