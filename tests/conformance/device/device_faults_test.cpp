// One request for memory fails while two ranks run a collective on a device: it is refused, or it ends with a sentence,
// or it succeeds. Nothing hangs, and no memory of the device is lost.
#include <gtest/gtest.h>

#include <string>

#include "base/out_of_memory.h"
#include "conformance/device/device_ranks.h"
#include "conformance/faults/fault_points.h"

namespace trestle {
namespace {

DeviceCall all_reduce(const Topology& topology) {
  PrepareRequest request;
  request.collective = Collective::kAllReduce;
  request.count = 3000;
  DeviceCall call;
  call.request = [request](int32_t) { return request; };
  call.schedule = schedule_of(request, topology, "", 1).value();
  return call;
}

// Whether the fault came before the end.
bool fails_after(const Topology& topology, const DeviceCall& call, long before) {
  DeviceRanks ranks(topology, {.most_delay_ns = 0});
  faults::arm(faults::Kind::kHeap, before);
  const bool begun = faults::counted(
      [&] { return unless_out_of_memory([&] { return ranks.begin(call).ok(); }, [] { return false; }); });
  // A call that only one rank has made is pending there: nobody waits for it, so it ends with the communicator.
  while (begun && ranks.pending() != 0) {
    faults::counted([&] { return ranks.drive(); });
    bool failed = false;
    for (int32_t r = 0; r < 2; ++r) failed |= ranks.engine(r).failed();
    for (int32_t r = 0; r < 2 && failed; ++r) ranks.engine(r).fail({Code::kRemoteError, "the other rank failed"});
  }
  const bool came = faults::disarm();
  for (int32_t r = 0; r < 2; ++r) {
    const auto failure = ranks.engine(r).failure();
    if (!failure) continue;
    EXPECT_TRUE(came) << failure->message;
    EXPECT_FALSE(failure->message.empty());
  }
  EXPECT_TRUE(came || ranks.results()[0] == ranks.results()[1]);
  return came;
}

TEST(DeviceFaults, OneRequestForMemoryFails) {
  faults::exempt_this_thread();
  const Topology topology = device_grid({2});
  const DeviceCall call = all_reduce(topology);
  long before = 0;
  for (; fails_after(topology, call, before); ++before) {
    ASSERT_LT(before, 100'000) << "it never ends without a fault";
    if (HasFailure()) break;
  }
  EXPECT_GT(before, 50) << "hardly any request was counted";
}

}  // namespace
}  // namespace trestle
