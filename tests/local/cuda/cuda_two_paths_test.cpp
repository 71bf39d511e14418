// Long messages between devices whose end goes through host memory, while the rest is read where it lies.
#include <cstdlib>
#include <string>
#include <vector>

#include "local/cuda/peers_job.h"

namespace fake_gpu {
namespace cuda_two_paths_test {
namespace {

constexpr size_t kManyNumbers = 3'300'011;  // blocks of four segments of 1 MiB and more, for 2 and 3 ranks

// Bytes that a rank has sent to others, by the name of the path.
uint64_t sent_over(trestleComm_t comm, const std::string& name) {
  uint64_t bytes = 0;
  for (const trestleRailStats_t& row : rails_of(comm)) {
    EXPECT_EQ(row.rails, 2);
    EXPECT_EQ(row.state, trestleRailUp);
    EXPECT_EQ(row.bytesQueued, 0u);
    EXPECT_EQ(row.bytesAcknowledged, row.bytesSent);
    if (row.name == name) bytes += row.bytesSent;
  }
  return bytes;
}

TEST(CudaTwoPaths, CarryPartsOfLongMessagesAtTheSameTime) {
  both_ways([](Gpu& gpu) {
    ::setenv("TRESTLE_HOST_PATH", "on", 1);
    ::setenv("TRESTLE_SEGMENT", "1M", 1);
    for (const std::vector<int>& devices : {std::vector<int>{0, 1}, {0, 0}, {0, 1, 1}}) {
      Job job(gpu, devices, false, kManyNumbers);
      job.run_all();
      job.run_all();
      for (int r = 0; r < job.ranks(); ++r) {
        EXPECT_EQ(rails_of(job.comm(r)).size(), 2 * (devices.size() - 1));
        EXPECT_GT(sent_over(job.comm(r), "host memory"), 0u) << "rank " << r << " of " << devices.size();
        EXPECT_GT(sent_over(job.comm(r), "peer memory"), sent_over(job.comm(r), "host memory"));
      }
      job.end();
    }
  });
}

// Where the path is slow, more than probes goes through the host, with the same results.
TEST(CudaTwoPaths, CarryMoreThroughTheHostWhereThatIsFaster) {
  ranks::isolated(
      [] {
        Gpu gpu;
        driver().slow_device_copies(2000);
        Job job(gpu, {0, 1}, false, kManyNumbers);
        for (int again = 0; again < 3; ++again) job.run_all();
        uint64_t through_host = 0;
        for (int r = 0; r < 2; ++r) through_host += sent_over(job.comm(r), "host memory");
        EXPECT_GT(through_host, 1u << 20);
        job.end();
      },
      {{"TRESTLE_HOST_PATH", "on"}, {"TRESTLE_SEGMENT", "2M"}});
}

TEST(CudaTwoPaths, LeaveShortMessagesWhole) {
  ranks::isolated([] {
    ::setenv("TRESTLE_HOST_PATH", "on", 1);
    Gpu gpu;
    Job job(gpu, {0, 1});
    job.run_all();
    EXPECT_EQ(sent_over(job.comm(0), "host memory"), 0u);
    EXPECT_EQ(job.pinned_by_calls(), 0);
    job.end();
  });
}

// Whether messages are divided. nvlinks: join the two devices.
void expect_divided(bool divided, const char* setting, bool nvlinks, const std::vector<int>& devices) {
  SCOPED_TRACE(std::string(setting) + (nvlinks ? ", NVLinks" : ", PCIe"));
  ranks::isolated(
      [&] {
        driver().set_nvlinks(nvlinks);
        Gpu gpu;
        Job job(gpu, devices);
        EXPECT_EQ(!rails_of(job.comm(0)).empty(), divided);
        job.end();
      },
      {{"TRESTLE_HOST_PATH", setting}});
}

// By default only where the devices have links of their own beside PCIe.
TEST(CudaTwoPaths, AreUsedAsTheSettingSays) {
  expect_divided(true, "auto", true, {0, 1});
  expect_divided(false, "auto", false, {0, 1});
  expect_divided(false, "auto", true, {0, 0});
  expect_divided(true, "on", false, {0, 0});
  expect_divided(false, "off", true, {0, 1});
}

// No device has a second path then.
TEST(CudaTwoPaths, AreNoneWithoutPeerAccess) {
  ranks::isolated(
      [] {
        driver().set_peer_access(false);
        Gpu gpu;
        Job job(gpu, {0, 1}, false, kManyNumbers);
        job.run_all();
        EXPECT_TRUE(rails_of(job.comm(0)).empty());
        job.end();
      },
      {{"TRESTLE_HOST_PATH", "on"}});
}

}  // namespace
}  // namespace cuda_two_paths_test
}  // namespace fake_gpu
