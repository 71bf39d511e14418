// A limit of the sizes of files (ulimit -f) is an error that names it, and no signal.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace process_limits {
namespace file_size_test {
namespace {

void limit_files(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(FileSizeLimit, IsSaidWhereMemoryIsAllocated) {
  ranks::isolated([] {
    limit_files(64 << 10);
    void* memory = nullptr;
    EXPECT_TRUE(ranks::refused(trestleMemAlloc(&memory, size_t{1} << 20), trestleSystemError,
                               {"cannot make 1048576 bytes of shared memory", "at most 65536 bytes", "ulimit -f 64"}));
  });
}

// Rank 1 has the limit. All ranks hear of it.
TEST(FileSizeLimit, IsSaidWhereRanksShareMemory) {
  const ranks::Settings settings{.ranks = 2, .transport = "shm"};
  ranks::Job job;
  job.ranks = settings.ranks;
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, settings, &comm)));
    if (process.rank == 1) limit_files(8 << 10);
    std::vector<float> data(size_t{1} << 20, 1.0f);
    (void)trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comm, nullptr);
    EXPECT_TRUE(ranks::refused(trestleCommSynchronize(comm), trestleSystemError,
                               {"rank 1", "at most 8192 bytes", "ulimit -f 8"}, comm));
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
}

// The log ends there, and the job goes on.
TEST(FileSizeLimit, EndsTheLog) {
  const TemporaryFolder folder;
  const ranks::Settings settings{.ranks = 2, .transport = "tcp"};
  ranks::Job job;
  job.ranks = settings.ranks;
  job.env = [&](int rank) {
    return ranks::Env{{"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_FILE", folder.path(std::to_string(rank))}};
  };
  job.body = [&](ranks::Process& process) {
    limit_files(1 << 10);
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, settings, &comm)));
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(ranks::succeeded(trestleBarrier(comm, nullptr), comm));
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  ranks::expect_ended_well(ranks::run(job));
  EXPECT_NE(folder.content("0"), "");
  EXPECT_LE(folder.content("0").size(), size_t{1} << 10);
}

}  // namespace
}  // namespace file_size_test
}  // namespace process_limits
