// Streams and events on the host: order inside a stream, independence between streams, events that connect them.
#include <gtest/gtest.h>

#include "conformance/api_call.h"
#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {
namespace api_streams_test {
namespace {

using ranks::succeeded;

const char* const kTransports[] = {"loopback", "shm", "tcp"};

class Stream {
 public:
  Stream() { EXPECT_TRUE(succeeded(trestleStreamCreate(&handle_))); }
  ~Stream() { EXPECT_TRUE(succeeded(trestleStreamDestroy(handle_))); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator trestleStream_t() const { return handle_; }

 private:
  trestleStream_t handle_ = nullptr;
};

class Event {
 public:
  Event() { EXPECT_TRUE(succeeded(trestleEventCreate(&handle_))); }
  ~Event() { EXPECT_TRUE(succeeded(trestleEventDestroy(handle_))); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator trestleEvent_t() const { return handle_; }

 private:
  trestleEvent_t handle_ = nullptr;
};

// Each call reads the result of the call before it, without a wait between them.
void run_chain(trestleComm_t comm, int rank, size_t count) {
  Stream stream;
  std::vector<int64_t> a(count, rank + 1);
  std::vector<int64_t> b(count, -1);
  int64_t wanted = 6;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(succeeded(trestleAllReduce(a.data(), b.data(), count, trestleInt64, trestleSum, comm, stream), comm));
    ASSERT_TRUE(succeeded(trestleBroadcast(b.data(), a.data(), count, trestleInt64, i % 3, comm, stream), comm));
    if (i > 0) wanted *= 3;
  }
  ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream), comm));
  EXPECT_TRUE(a == std::vector<int64_t>(count, wanted)) << a[0] << " instead of " << wanted;
  EXPECT_EQ(trestleStreamQuery(stream), trestleSuccess);
}

TEST(ApiStreams, CallsOfAStreamRunInOrder) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 3, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      run_chain(comm, rank, 5);
      run_chain(comm, rank, 20'011);
    });
  }
}

// A stream that waits for a message does not delay another one.
TEST(ApiStreams, ABlockedStreamDoesNotBlockAnother) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      Stream blocked;
      Stream free;
      int32_t message = 0;
      if (rank == 0) {
        ASSERT_TRUE(succeeded(trestleRecv(&message, 1, trestleInt32, 1, comm, blocked), comm));
      }
      for (uint64_t i = 0; i < 10; ++i) {
        Execution run({.count = i * 4001, .seed = i}, rank, 2);
        ASSERT_TRUE(succeeded(run.start(comm, free), comm));
        ASSERT_TRUE(succeeded(trestleStreamSynchronize(free), comm));
        EXPECT_EQ(run.verify(), "");
      }
      if (rank == 0) {
        EXPECT_EQ(trestleStreamQuery(blocked), trestleInProgress);
        EXPECT_EQ(message, 0);
      }
      // Rank 1 sends only now, after rank 0 has seen that its stream still waits.
      ASSERT_TRUE(succeeded(trestleBarrier(comm, free), comm));
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(free), comm));
      const int32_t sent = 4711;
      if (rank == 1) {
        ASSERT_TRUE(succeeded(trestleSend(&sent, 1, trestleInt32, 0, comm, blocked), comm));
      }
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(blocked), comm));
      EXPECT_EQ(message, rank == 0 ? sent : 0);
    });
  }
}

// Rank 0's second stream sends the data that its first one receives, after an event. The message comes late.
void forward_after_event(int rank, trestleComm_t comm) {
  Stream first;
  Stream second;
  Stream control;
  Event event;
  EXPECT_EQ(trestleEventQuery(event), trestleSuccess) << "never recorded";
  EXPECT_TRUE(succeeded(trestleEventSynchronize(event)));
  constexpr size_t kCount = 5003;
  std::vector<int32_t> a(kCount, 0);
  std::vector<int32_t> b(kCount, 0);
  const std::vector<int32_t> source(kCount, 99);
  if (rank == 0) {
    ASSERT_TRUE(succeeded(trestleRecv(a.data(), kCount, trestleInt32, 1, comm, first), comm));
    ASSERT_TRUE(succeeded(trestleEventRecord(event, first)));
    ASSERT_TRUE(succeeded(trestleStreamWaitEvent(second, event)));
    ASSERT_TRUE(succeeded(trestleSend(a.data(), kCount, trestleInt32, 1, comm, second), comm));
    EXPECT_EQ(trestleEventQuery(event), trestleInProgress);
    EXPECT_EQ(trestleStreamQuery(second), trestleInProgress);
  }
  ASSERT_TRUE(succeeded(trestleBarrier(comm, control), comm));
  ASSERT_TRUE(succeeded(trestleStreamSynchronize(control), comm));
  if (rank == 0) {
    ASSERT_TRUE(succeeded(trestleEventSynchronize(event)));
    EXPECT_EQ(trestleEventQuery(event), trestleSuccess);
    EXPECT_TRUE(a == source);
  } else {
    ASSERT_TRUE(succeeded(trestleSend(source.data(), kCount, trestleInt32, 0, comm, first), comm));
    ASSERT_TRUE(succeeded(trestleRecv(b.data(), kCount, trestleInt32, 0, comm, second), comm));
  }
  ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_EQ(trestleStreamQuery(first), trestleSuccess);
  EXPECT_EQ(trestleStreamQuery(second), trestleSuccess);
  if (rank == 1) {
    EXPECT_TRUE(b == source) << "sent on before the event";
  }
}

TEST(ApiStreams, EventsOrderStreams) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    ranks::on_threads(settings, forward_after_event);
  }
}

// A wait refers to the event's last record before the wait, not to later ones.
TEST(ApiStreams, AWaitMeansTheRecordBeforeIt) {
  const ranks::Settings settings{.ranks = 2, .transport = "shm"};
  ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
    // Declared before the streams, because their destruction waits for the send that reads it.
    int32_t message = 0;
    const int32_t sent = 5;
    Stream idle;
    Stream blocked;
    Stream waiting;
    Event event;
    ASSERT_TRUE(succeeded(trestleEventRecord(event, idle)));
    ASSERT_TRUE(succeeded(trestleStreamWaitEvent(waiting, event)));
    if (rank == 0) {
      ASSERT_TRUE(succeeded(trestleRecv(&message, 1, trestleInt32, 1, comm, blocked), comm));
    }
    ASSERT_TRUE(succeeded(trestleEventRecord(event, blocked)));
    Execution run({.count = 1000}, rank, 2);
    ASSERT_TRUE(succeeded(run.start(comm, waiting), comm));
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(waiting), comm)) << "waited for the later record";
    EXPECT_EQ(run.verify(), "");
    if (rank == 1) {
      ASSERT_TRUE(succeeded(trestleSend(&sent, 1, trestleInt32, 0, comm, blocked), comm));
    }
    ASSERT_TRUE(succeeded(trestleEventSynchronize(event)));
    EXPECT_EQ(message, rank == 0 ? sent : 0);
  });
}

// Runs `body` on two ranks with two communicators each.
void with_two_communicators(const ranks::Settings& settings,
                            const std::function<void(int rank, trestleComm_t, trestleComm_t)>& body) {
  ranks::isolated([&] {
    std::vector<trestleComm_t> other(static_cast<size_t>(settings.ranks));
    const trestleConfig_t config = config_of(settings);
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(other.data(), settings.ranks, &config)));
    ranks::run_threads(settings, [&](int rank, trestleComm_t comm) {
      body(rank, comm, other[static_cast<size_t>(rank)]);
      EXPECT_TRUE(succeeded(trestleCommDestroy(other[static_cast<size_t>(rank)])));
    });
  });
}

TEST(ApiStreams, TwoCommunicatorsOnOneStream) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    with_two_communicators(settings, [](int, trestleComm_t first, trestleComm_t second) {
      Stream stream;
      std::vector<int32_t> x(3001, 1);
      for (int i = 0; i < 10; ++i) {
        const trestleComm_t comm = i % 2 == 0 ? first : second;
        ASSERT_TRUE(succeeded(trestleAllReduce(x.data(), x.data(), x.size(), trestleInt32, trestleSum, comm, stream)));
      }
      ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
      EXPECT_TRUE(x == std::vector<int32_t>(3001, 1024)) << x[0];
    });
  }
}

// The classic deadlock: two communicators, two streams, 64 MiB each, with calls in opposite order on the two ranks.
TEST(ApiStreams, OppositeOrderOfTwoCommunicatorsFinishes) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    with_two_communicators(settings, [&](int rank, trestleComm_t first, trestleComm_t second) {
      const trestleComm_t comms[2] = {first, second};
      constexpr size_t kCount = size_t{16} << 20;
      std::vector<uint32_t> data[2] = {std::vector<uint32_t>(kCount), std::vector<uint32_t>(kCount)};
      Stream streams[2];
      for (const int k : {0, 1}) {
        for (size_t i = 0; i < kCount; ++i) data[k][i] = static_cast<uint32_t>(i * 7 + static_cast<size_t>(rank + k));
      }
      for (const int k : {rank, 1 - rank}) {
        ASSERT_TRUE(succeeded(
            trestleAllReduce(data[k].data(), data[k].data(), kCount, trestleUint32, trestleSum, comms[k], streams[k]),
            comms[k]));
      }
      for (const int k : {rank, 1 - rank}) ASSERT_TRUE(succeeded(trestleStreamSynchronize(streams[k]), comms[k]));
      for (const int k : {0, 1}) {
        size_t wrong = 0;
        for (size_t i = 0; i < kCount; ++i) {
          wrong += data[k][i] != static_cast<uint32_t>(2 * (i * 7) + 1 + 2 * static_cast<size_t>(k)) ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0u) << transport << ", communicator " << k;
      }
    });
  }
}

// A stream may be destroyed as soon as its work is enqueued; Destroy waits for the work.
TEST(ApiStreams, DestroyWaitsForTheWork) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 2, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      trestleStream_t stream = nullptr;
      ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
      Execution run({.count = 400'009, .seed = 3}, rank, 2);
      ASSERT_TRUE(succeeded(run.start(comm, stream), comm));
      ASSERT_TRUE(succeeded(trestleStreamDestroy(stream), comm));
      EXPECT_EQ(run.verify(), "");
    });
  }
}

// Finalize is collective and waits for all work. Afterwards only Destroy and queries are allowed.
TEST(ApiStreams, FinalizeWaitsForEverything) {
  for (const char* transport : kTransports) {
    const ranks::Settings settings{.ranks = 3, .transport = transport};
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      Execution run({.count = 100'003, .seed = 4}, rank, 3);
      ASSERT_TRUE(succeeded(run.start(comm, nullptr), comm));
      ASSERT_TRUE(succeeded(trestleCommFinalize(comm), comm));
      EXPECT_EQ(run.verify(), "");
      Execution late({.count = 10}, rank, 3);
      EXPECT_TRUE(ranks::refused(late.start(comm, nullptr), trestleInvalidUsage, {"finalized"}));
      int count = 0;
      EXPECT_TRUE(succeeded(trestleCommCount(comm, &count)));
      EXPECT_EQ(count, 3);
    });
  }
}

}  // namespace
}  // namespace api_streams_test
}  // namespace api
