// Ranks that do not call, leave or abort: the others get a code and a sentence, and no rank hangs. blame_test.cpp has
// those that stop or never come.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "conformance/api_call.h"
#include "support/ranks.h"

namespace api {
namespace deadline_test {
namespace {

using ranks::contains;
using ranks::refused;
using ranks::succeeded;

const char* const kTransports[] = {"shm", "tcp"};
constexpr int64_t kLongMs = 300'000;  // the watchdog ends a rank that waits for this deadline

// Rank 1 makes 5 calls but not the sixth. The others' deadline passes, and rank 1 is told of it.
void wait_in_vain(ranks::Process& process, trestleComm_t comm, size_t count) {
  for (uint64_t i = 0; i < 5; ++i) run_and_verify({.count = count, .seed = i}, process.rank, process.ranks, comm);
  std::vector<float> x(count, 1.0f);
  if (process.rank == 1) {
    ranks::wait_until([&] { return process.board.word[0].load() == process.ranks - 1; });
    trestleResult_t result = trestleSuccess;
    while (result == trestleSuccess) {  // the news may still be on its way
      ASSERT_EQ(trestleCommGetAsyncError(comm, &result), trestleSuccess);
    }
    EXPECT_TRUE(contains(trestleGetLastError(comm), "rank 1")) << trestleGetLastError(comm);
    EXPECT_EQ(trestleAllReduce(x.data(), x.data(), count, trestleFloat32, trestleSum, comm, nullptr), result);
    return;
  }
  trestleResult_t result = trestleAllReduce(x.data(), x.data(), count, trestleFloat32, trestleSum, comm, nullptr);
  if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  EXPECT_TRUE(refused(result, trestleTimeout, {"rank 1 (", "has not called operation 5"}, comm));
  process.board.word[0].fetch_add(1);
}

// The calls before that one must succeed by the same deadline.
void name_the_absent(const ranks::Settings& hasty, size_t count) {
  const ranks::Settings settings = ranks::patient(hasty);
  SCOPED_TRACE(testing::Message() << settings << ", " << count << " elements");
  ranks::joined(settings, [&](ranks::Process& process, trestleComm_t comm) {
    wait_in_vain(process, comm, count);
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

TEST(ApiDeadline, ARankThatDoesNotCallIsNamed) {
  for (const char* transport : kTransports) {
    for (const size_t count : {size_t{2}, size_t{5000}, size_t{500'000}})
      name_the_absent({.ranks = count == 5000 ? 2 : 4, .transport = transport, .timeout_ms = 2000}, count);
  }
}

// In a ring or a tree most ranks await a rank that is itself waiting.
TEST(ApiDeadline, ARankThatDoesNotCallIsNamedWhateverTheAlgorithm) {
  for (const char* algorithm : {"ring", "rd", "hd", "tree", "dbtree", "direct"})
    name_the_absent({.ranks = 6, .transport = "shm", .algo = algorithm, .timeout_ms = 2000}, 5000);
  name_the_absent({.ranks = 6, .dims = "3x2", .transport = "shm,tcp", .algo = "ring,hd", .timeout_ms = 2000}, 5000);
}

// Two ranks wait for each other's message. Both are equally to blame.
TEST(ApiDeadline, ACircleOfReceiversIsTold) {
  for (const char* transport : kTransports) {
    SCOPED_TRACE(transport);
    const ranks::Settings settings = ranks::patient({.ranks = 3, .transport = transport, .timeout_ms = 1000});
    ranks::joined(settings, [&](ranks::Process& process, trestleComm_t comm) {
      std::vector<float> x(100);
      const int from = (process.rank + 1) % 3;
      trestleResult_t result = trestleRecv(x.data(), x.size(), trestleFloat32, from, comm, nullptr);
      if (result == trestleSuccess) result = trestleCommSynchronize(comm);
      EXPECT_TRUE(refused(result, trestleTimeout, {"wait for each other", "has not called the Send"}, comm));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

// A rank makes one half of a message to itself, so there is no other rank to ask.
TEST(ApiDeadline, AMessageToItselfThatIsNeverTakenEndsToo) {
  for (const char* transport : {"", "shm", "tcp"}) {
    for (const bool sends : {true, false}) {
      SCOPED_TRACE(testing::Message() << transport << (sends ? " sends" : " receives"));
      const ranks::Settings settings = ranks::patient({.ranks = 2, .transport = transport, .timeout_ms = 200});
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
        float x = 1;
        trestleResult_t result = sends ? trestleSend(&x, 1, trestleFloat32, rank, comm, nullptr)
                                       : trestleRecv(&x, 1, trestleFloat32, rank, comm, nullptr);
        if (result == trestleSuccess) result = trestleCommSynchronize(comm);
        EXPECT_TRUE(refused(result, trestleTimeout, {"deadline passed", "message 0"}, comm));
      });
    }
  }
}

// One thread waits for a message that no rank sends. Another thread aborts the communicator.
TEST(ApiDeadline, AbortEndsAWaitOfAnotherThread) {
  for (const char* transport : kTransports) {
    for (const bool own_stream : {true, false}) {
      SCOPED_TRACE(transport);
      const ranks::Settings settings{.ranks = 2, .transport = transport, .timeout_ms = kLongMs};
      ranks::joined(settings, [&](ranks::Process& process, trestleComm_t comm) {
        trestleStream_t stream = nullptr;
        ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
        std::vector<float> x(100'000);
        ASSERT_TRUE(succeeded(
            trestleRecv(x.data(), x.size(), trestleFloat32, 1 - process.rank, comm, own_stream ? stream : nullptr)));
        std::atomic<bool> waits{false};
        std::thread aborter;
        if (process.rank == 0) {
          aborter = std::thread([&] {
            ranks::wait_until([&] { return waits.load(); });
            ranks::spin(2'000'000);
            EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
          });
        }
        waits.store(true);
        const trestleResult_t result = own_stream ? trestleStreamSynchronize(stream) : trestleCommSynchronize(comm);
        EXPECT_EQ(result, trestleAborted);
        if (aborter.joinable()) aborter.join();
        if (process.rank == 1) {
          EXPECT_TRUE(contains(trestleGetLastError(comm), "rank 0")) << trestleGetLastError(comm);
          EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
        }
        trestleStreamDestroy(stream);
      });
    }
  }
}

// Abort is also bounded while the operation moves data.
TEST(ApiDeadline, AbortEndsALargeTransfer) {
  for (const char* transport : kTransports) {
    SCOPED_TRACE(transport);
    const ranks::Settings settings{.ranks = 3, .transport = transport, .timeout_ms = kLongMs};
    ranks::joined(settings, [&](ranks::Process& process, trestleComm_t comm) {
      std::vector<float> x(size_t{8} << 20, 1.0f);
      trestleResult_t result = trestleSuccess;
      for (int i = 0; i < 1000 && result == trestleSuccess; ++i) {
        result = trestleAllReduce(x.data(), x.data(), x.size(), trestleFloat32, trestleMax, comm, nullptr);
        if (process.rank == 1 && i == 2) {
          EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
          return;
        }
        if (result == trestleSuccess) result = trestleCommSynchronize(comm);
      }
      EXPECT_TRUE(refused(result, trestleAborted, {"rank 1"}, comm));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

// Other ranks cannot wait for a rank that has left in order. They fail before their deadline.
TEST(ApiDeadline, ARankThatLeftIsNamed) {
  for (const char* transport : kTransports) {
    SCOPED_TRACE(transport);
    const ranks::Settings settings{.ranks = 3, .transport = transport, .timeout_ms = kLongMs};
    ranks::joined(settings, [&](ranks::Process& process, trestleComm_t comm) {
      run_and_verify({.count = 10'000}, process.rank, 3, comm);
      if (process.rank == 1) {
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
        return;
      }
      std::vector<float> x(100'000, 1.0f);
      trestleResult_t result =
          trestleAllReduce(x.data(), x.data(), x.size(), trestleFloat32, trestleSum, comm, nullptr);
      if (result == trestleSuccess) result = trestleCommSynchronize(comm);
      EXPECT_TRUE(refused(result, trestleRemoteError, {"rank 1"}, comm));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
}

}  // namespace
}  // namespace deadline_test
}  // namespace api
