#include "local/nccl/nccl_ranks.h"

#include <cstring>
#include <thread>

#include "support/ranks.h"

namespace nccl_ranks {

static_assert(sizeof(ncclUniqueId) == sizeof(trestleUniqueId));

testing::AssertionResult succeeded(ncclResult_t result, ncclComm_t comm) {
  if (result == ncclSuccess) return testing::AssertionSuccess();
  return testing::AssertionFailure() << ncclGetErrorString(result) << " (" << result << "): " << ncclGetLastError(comm);
}

testing::AssertionResult refused(ncclResult_t result, ncclResult_t expected, const std::vector<std::string>& facts,
                                 ncclComm_t comm) {
  const std::string sentence = ncclGetLastError(comm);
  if (result != expected) {
    return testing::AssertionFailure() << "code " << result << " instead of " << expected << ": " << sentence;
  }
  if (sentence.empty()) return testing::AssertionFailure() << "code " << result << " without a sentence";
  for (const std::string& fact : facts) {
    if (!ranks::contains(sentence, fact)) return testing::AssertionFailure() << "no '" << fact << "' in: " << sentence;
  }
  return testing::AssertionSuccess();
}

void with_id(int count, const std::function<void(int rank, ncclUniqueId id)>& body) {
  ranks::Job job;
  job.ranks = count;
  job.body = [&](ranks::Process& process) {
    ncclUniqueId id;
    if (process.rank == 0) {
      ASSERT_TRUE(succeeded(ncclGetUniqueId(&id)));
      std::memcpy(&process.board.id, &id, sizeof id);
      process.board.id_written.store(1);
    }
    ranks::wait_until([&] { return process.board.id_written.load() == 1; });
    std::memcpy(&id, &process.board.id, sizeof id);
    body(process.rank, id);
  };
  ranks::expect_ended_well(ranks::run(job));
}

void on_processes(int count, const Body& body) {
  with_id(count, [&](int rank, ncclUniqueId id) {
    ncclComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ncclCommInitRank(&comm, count, id, rank)));
    body(rank, comm);
    EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
  });
}

void on_threads(int count, const Body& body) {
  ranks::isolated([&] {
    std::vector<ncclComm_t> comms(static_cast<size_t>(count));
    ASSERT_TRUE(succeeded(ncclCommInitAll(comms.data(), count, nullptr)));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        const ncclComm_t comm = comms[static_cast<size_t>(rank)];
        body(rank, comm);
        EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace nccl_ranks
