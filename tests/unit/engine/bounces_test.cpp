// Bounce buffers beside peer paths: which messages have them, how much memory they take, and when a step may use its
// own.
#include "engine/prepare/bounces.h"

#include <gtest/gtest.h>

#include <set>

#include "sched/select/select.h"
#include "unit/engine/grids.h"

namespace trestle {
namespace bounces_test {
namespace {

constexpr int32_t kRanks = 4;
constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t one_mib(const void*, const std::vector<int32_t>&) {
  return kMiB;
}

// An all-gather of blocks of so many bytes on one device, whose ranks have paths that divide messages, or do not.
std::shared_ptr<const Prepared> all_gather(uint64_t block_bytes, bool divides) {
  const Topology topology = engine_grid({kRanks});
  PeerPaths paths(std::vector<PeerPath>(kRanks, PeerPath::kSameDevice));
  for (int32_t rank = 0; rank < kRanks && divides; ++rank) paths.divide(rank);
  PrepareRequest request;
  request.collective = Collective::kAllGather;
  request.count = block_bytes;
  request.type = DataType::kInt8;
  request.place = MemoryPlace::kDevice;
  SelectionRequest selection;
  selection.collective = request.collective;
  selection.element_bytes = 1;
  selection.bytes = kRanks * block_bytes;
  SelectionConfig config;
  config.chunks = 1;
  PrepareContext context{&topology, 0, false, &one_mib, nullptr};
  context.peer_paths = &paths;
  return prepare(request, select_schedule(selection, topology, config).value(), context).value();
}

TEST(Bounces, BesidePathsAreForLongMessagesOnly) {
  for (const uint64_t block_bytes : {kMiB / 2, 3 * kMiB, 4 * kMiB, 64 * kMiB}) {
    SCOPED_TRACE(block_bytes);
    const auto prepared = all_gather(block_bytes, true);
    bool any = false;
    for (const PreparedPhase& phase : prepared->phases[0]) {
      for (size_t s = 0; s < phase.bounces.size(); ++s) {
        const StepBounce& bounce = phase.bounces[s];
        const bool sends = phase.plan->steps[s].kind == StepKind::kSend;
        const bool is_long = phase.step_bytes[s] > 3 * kMiB;
        EXPECT_EQ(bounce.beside, sends && is_long) << "step " << s;
        EXPECT_EQ(bounce.messages, bounce.beside ? 1u : 0u) << "step " << s;
        if (bounce.beside) {
          EXPECT_EQ(bounce.message_bytes, most_through_host(kMiB));
        }
        any = any || bounce.beside;
      }
    }
    EXPECT_EQ(prepared->bounce_bytes > 0, any);
    EXPECT_LE(prepared->bounce_bytes, kBounceBytes / 4);
    EXPECT_EQ(all_gather(block_bytes, false)->bounce_bytes, 0u);
  }
}

// A step that goes in place may begin, and end, although another one still uses its places.
TEST(Bounces, AreUsedWhenAllEarlierStepsThereAreComplete) {
  std::vector<StepBounce> bounces(4);
  for (uint32_t step = 1; step < 4; ++step) bounces[step].before = step - 1;
  std::set<uint32_t> complete;
  const auto may_use = [&](uint32_t step) {
    return has_places(bounces, step, [&](uint32_t before) { return complete.contains(before); });
  };
  for (StepBounce& bounce : bounces) bounce.beside = true;
  EXPECT_TRUE(may_use(0));
  complete = {1, 2};
  EXPECT_FALSE(may_use(3)) << "the first one uses them";
  EXPECT_FALSE(may_use(1));
  complete = {0, 1, 2};
  EXPECT_TRUE(may_use(3));
  complete = {0, 2};
  EXPECT_FALSE(may_use(3)) << "the second one may use them";
}

}  // namespace
}  // namespace bounces_test
}  // namespace trestle
