// Calls that are captured into graphs, through the public header: their data, their order, their ends.
#include <algorithm>
#include <array>
#include <string>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_graphs_test {
namespace {

// More and less than what small calls carry.
constexpr size_t kCounts[] = {3, 100'000};

// A rank with memory that its calls use, and a stream to capture.
struct Rank {
  // device: where the calls' buffer is; -1: in pinned memory.
  Rank(Gpu& gpu, trestleComm_t of, size_t elements, int device = -1)
      : comm(of),
        index(std::max(device, 0)),
        cuda(gpu.make_stream(index)),
        stream(wrapped(cuda)),
        count(elements),
        given(gpu.pinned(elements, 0)),
        buffer(device < 0 ? gpu.pinned(elements, 0)
                          : reinterpret_cast<float*>(gpu.device(device).allocate(elements * sizeof(float)).value())),
        result(gpu.pinned(elements, 0)) {}
  // In the graph: takes what is given, adds it up over the ranks, and copies it to the result.
  void capture(Gpu& gpu) {
    ASSERT_TRUE(gpu.device(index).begin_capture(cuda).ok());
    gpu.copy(buffer, given, count, cuda, index);
    ASSERT_TRUE(succeeded(all_reduce(buffer, count, comm, stream)));
    gpu.copy(result, buffer, count, cuda, index);
    graph = gpu.device(index).end_capture(cuda).value();
  }
  void launch(Gpu& gpu, float value) {
    std::fill_n(given, count, value);
    ASSERT_TRUE(gpu.device().launch(graph, cuda).ok());
  }
  trestleComm_t comm;
  int index;
  StreamHandle* cuda;
  trestleStream_t stream;
  size_t count;
  float* given;
  float* buffer;
  float* result;
  trestle::GraphHandle* graph = nullptr;
};

using Ranks = std::array<Rank, 2>;

Ranks two_ranks(Gpu& gpu, const std::vector<trestleComm_t>& comms, size_t count) {
  return {Rank(gpu, comms[0], count), Rank(gpu, comms[1], count)};
}

void await(Gpu& gpu, Ranks& ranks) {
  for (Rank& rank : ranks) gpu.await_idle(rank.cuda);
}

void end(Gpu& gpu, Ranks& ranks) {
  for (Rank& rank : ranks) {
    ASSERT_TRUE(gpu.device().destroy_graph(rank.graph).ok());
    ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
  }
}

// Two ranks with a graph that stays. The driver and the library take the ends of graphs and their launches in order:
// once a launch of this graph is done, graphs that were destroyed before it have given back what they had.
class Ends {
 public:
  Ends(Gpu& gpu, const std::vector<trestleComm_t>& comms) : gpu_(gpu), ranks_(two_ranks(gpu, comms, 3)) {
    for (Rank& rank : ranks_) rank.capture(gpu_);
  }
  void await() {
    for (Rank& rank : ranks_) rank.launch(gpu_, 1);
    cuda_graphs_test::await(gpu_, ranks_);
  }
  void end() { cuda_graphs_test::end(gpu_, ranks_); }

 private:
  Gpu& gpu_;
  Ranks ranks_;
};

// Graphs need streams that wait for words.
void with_words(const std::function<void(Gpu&)>& body, const ranks::Env& env = {}) {
  const auto on_gpu = [&] {
    Gpu gpu;
    body(gpu);
  };
  ranks::isolated(on_gpu, env);
}

TEST(CudaGraphs, EveryLaunchRunsTheCallOnTheDataOfItsTime) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    for (const size_t count : kCounts) {
      Ranks ranks = two_ranks(gpu, comms, count);
      for (Rank& rank : ranks) rank.capture(gpu);
      EXPECT_EQ(ranks[0].result[0], 0) << "a capture runs nothing";
      for (float round = 1; round < 6; ++round) {
        for (size_t r = 0; r < 2; ++r) ranks[r].launch(gpu, round * (r == 0 ? 1 : 10));
        await(gpu, ranks);
        for (const Rank& rank : ranks) {
          for (const size_t i : {size_t{0}, count - 1}) EXPECT_EQ(rank.result[i], 11 * round);
        }
      }
      end(gpu, ranks);
    }
    destroy(comms);
  });
}

// Memory of two devices, over shared memory of the host, tcp or loopback, with calls compared or not.
TEST(CudaGraphs, TakeTheWaysOfOtherCalls) {
  const ranks::Env settings[] = {{{"TRESTLE_TRANSPORT", "tcp"}},
                                 {{"TRESTLE_TRANSPORT", "shm"}},
                                 {{"TRESTLE_CHECK", "1"}},
                                 {{"TRESTLE_PEER_ACCESS", "0"}}};
  for (const ranks::Env& env : settings) {
    SCOPED_TRACE(env.begin()->first + "=" + env.begin()->second);
    const auto body = [&](Gpu& gpu) {
      const auto comms = communicators({0, 1});
      Ranks ranks = {Rank(gpu, comms[0], 50'000, 0), Rank(gpu, comms[1], 50'000, 1)};
      for (Rank& rank : ranks) rank.capture(gpu);
      for (float round = 1; round < 6; ++round) {
        for (Rank& rank : ranks) rank.launch(gpu, round);
        await(gpu, ranks);
        for (const Rank& rank : ranks) EXPECT_EQ(rank.result[49'999], 2 * round);
      }
      end(gpu, ranks);
      destroy(comms);
    };
    with_words(body, env);
  }
}

// Nobody waits in the library, and launches are queued ahead on the device.
TEST(CudaGraphs, LaunchesMayBeAheadOfTheDevice) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 1000);
    for (Rank& rank : ranks) {
      ASSERT_TRUE(gpu.device().begin_capture(rank.cuda).ok());
      ASSERT_TRUE(succeeded(all_reduce(rank.buffer, rank.count, rank.comm, rank.stream)));
      rank.graph = gpu.device().end_capture(rank.cuda).value();
      std::fill_n(rank.buffer, rank.count, 1);
    }
    driver().hold_streams(true);
    for (int round = 0; round < 10; ++round) {
      for (Rank& rank : ranks) ASSERT_TRUE(gpu.device().launch(rank.graph, rank.cuda).ok());
    }
    driver().hold_streams(false);
    await(gpu, ranks);
    for (const Rank& rank : ranks) EXPECT_EQ(rank.buffer[999], 1024);
    end(gpu, ranks);
    destroy(comms);
  });
}

// The numbers of captured calls do not depend on when a device comes to them.
TEST(CudaGraphs, RanksMayLaunchGraphsInDifferentOrders) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks first = two_ranks(gpu, comms, 1000);
    Ranks second = two_ranks(gpu, comms, 77);
    for (Ranks* const ranks : {&first, &second}) {
      for (Rank& rank : *ranks) rank.capture(gpu);
    }
    for (float round = 1; round < 20; ++round) {
      first[0].launch(gpu, round);
      second[0].launch(gpu, 2 * round);
      second[1].launch(gpu, 5 * round);
      first[1].launch(gpu, 4 * round);
      await(gpu, first);
      await(gpu, second);
      for (size_t r = 0; r < 2; ++r) {
        EXPECT_EQ(first[r].result[999], 5 * round);
        EXPECT_EQ(second[r].result[76], 7 * round);
      }
    }
    end(gpu, first);
    end(gpu, second);
    destroy(comms);
  });
}

// Rank 0 makes its other calls first, rank 1 behind the launch.
TEST(CudaGraphs, OtherCallsMayComeBetween) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 500);
    for (Rank& rank : ranks) rank.capture(gpu);
    float* const others[] = {gpu.pinned(10, 1), gpu.pinned(10, 2)};
    for (float round = 1; round < 10; ++round) {
      for (int r = 0; r < 2; ++r) std::fill_n(others[r], 10, static_cast<float>(r + 1));
      ASSERT_TRUE(succeeded(all_reduce(others[0], 10, comms[0], nullptr)));
      for (Rank& rank : ranks) rank.launch(gpu, round);
      ASSERT_TRUE(succeeded(all_reduce(others[1], 10, comms[1], nullptr)));
      await(gpu, ranks);
      for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommSynchronize(comm)));
      for (int r = 0; r < 2; ++r) {
        EXPECT_EQ(ranks[static_cast<size_t>(r)].result[499], 2 * round);
        EXPECT_EQ(others[r][9], 3);
      }
    }
    end(gpu, ranks);
    destroy(comms);
  });
}

TEST(CudaGraphs, AGroupTakesOnePlaceOnEachStream) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 64);
    for (Rank& rank : ranks) ASSERT_TRUE(gpu.device().begin_capture(rank.cuda).ok());
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (int r = 0; r < 2; ++r) {
      Rank& rank = ranks[static_cast<size_t>(r)];
      ASSERT_TRUE(succeeded(trestleSend(rank.given, rank.count, trestleFloat32, 1 - r, rank.comm, rank.stream)));
      ASSERT_TRUE(succeeded(trestleRecv(rank.result, rank.count, trestleFloat32, 1 - r, rank.comm, rank.stream)));
      ASSERT_TRUE(succeeded(all_reduce(rank.buffer, rank.count, rank.comm, rank.stream)));
    }
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (Rank& rank : ranks) rank.graph = gpu.device().end_capture(rank.cuda).value();
    for (float round = 1; round < 10; ++round) {
      for (size_t r = 0; r < 2; ++r) {
        std::fill_n(ranks[r].buffer, ranks[r].count, round);
        ranks[r].launch(gpu, round * static_cast<float>(r + 1));
      }
      await(gpu, ranks);
      for (size_t r = 0; r < 2; ++r) {
        EXPECT_EQ(ranks[r].result[63], round * static_cast<float>(2 - r));
        EXPECT_EQ(ranks[r].buffer[63], 2 * round);
      }
    }
    end(gpu, ranks);
    destroy(comms);
  });
}

// Nothing of a launch asks the driver for memory.
TEST(CudaGraphs, LaunchesMakeNoSlowCalls) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = {Rank(gpu, comms[0], 100'000, 0), Rank(gpu, comms[1], 100'000, 0)};
    for (Rank& rank : ranks) rank.capture(gpu);
    driver().forbid_slow_calls(true);
    for (float round = 1; round < 6; ++round) {
      for (Rank& rank : ranks) rank.launch(gpu, round);
      await(gpu, ranks);
      for (const Rank& rank : ranks) EXPECT_EQ(rank.result[99'999], 2 * round);
    }
    driver().forbid_slow_calls(false);
    end(gpu, ranks);
    destroy(comms);
  });
}

TEST(CudaGraphs, AGraphMayOutliveItsCommunicator) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 1000);
    for (Rank& rank : ranks) rank.capture(gpu);
    for (Rank& rank : ranks) rank.launch(gpu, 1);
    await(gpu, ranks);
    destroy(comms);
    for (Rank& rank : ranks) rank.launch(gpu, 7);
    await(gpu, ranks);
    for (const Rank& rank : ranks) EXPECT_EQ(rank.result[0], 7) << "only the copies are done";
    end(gpu, ranks);
  });
}

// Capturing and dropping graphs again and again takes no more memory, and no more words than were there at first.
TEST(CudaGraphs, ThatAreGoneLeaveNothing) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = {Rank(gpu, comms[0], 20'000, 0), Rank(gpu, comms[1], 20'000, 0)};
    Ends ends(gpu, comms);
    trestle::FakeObjects after;
    for (int round = 0; round < 700; ++round) {
      for (Rank& rank : ranks) rank.capture(gpu);
      if (round % 100 < 2) {
        for (Rank& rank : ranks) rank.launch(gpu, 1);
        await(gpu, ranks);
      }
      for (Rank& rank : ranks) ASSERT_TRUE(gpu.device().destroy_graph(rank.graph).ok());
      ends.await();
      if (round == 1) after = driver().objects();
    }
    EXPECT_EQ(driver().objects().memory, after.memory);
    EXPECT_EQ(driver().objects().pinned, after.pinned);
    EXPECT_EQ(driver().objects().graphs, after.graphs);
    ends.end();
    for (Rank& rank : ranks) ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
    destroy(comms);
  });
}

// Calls on one stream of a capture follow each other, so they need no more memory than the largest of them.
TEST(CudaGraphs, CallsBehindEachOtherShareMemory) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = {Rank(gpu, comms[0], 20'000, 0), Rank(gpu, comms[1], 20'000, 0)};
    Ends ends(gpu, comms);
    trestle::FakeObjects objects[2];
    for (const int calls : {1, 50}) {
      for (Rank& rank : ranks) {
        ASSERT_TRUE(gpu.device().begin_capture(rank.cuda).ok());
        gpu.copy(rank.buffer, rank.given, rank.count, rank.cuda);
        for (int i = 0; i < calls; ++i)
          ASSERT_TRUE(succeeded(all_reduce(rank.buffer, rank.count, rank.comm, rank.stream)));
        gpu.copy(rank.result, rank.buffer, rank.count, rank.cuda);
        rank.graph = gpu.device().end_capture(rank.cuda).value();
      }
      objects[calls == 1 ? 0 : 1] = driver().objects();
      for (Rank& rank : ranks) rank.launch(gpu, 1);
      await(gpu, ranks);
      for (const Rank& rank : ranks) EXPECT_EQ(rank.result[19'999], static_cast<float>(uint64_t{1} << calls));
      for (Rank& rank : ranks) ASSERT_TRUE(gpu.device().destroy_graph(rank.graph).ok());
      ends.await();
    }
    ends.end();
    EXPECT_EQ(objects[1].memory, objects[0].memory);
    EXPECT_EQ(objects[1].pinned, objects[0].pinned);
    for (Rank& rank : ranks) ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
    destroy(comms);
  });
}

// Numbers follow the calls of a group, not its streams.
TEST(CudaGraphs, RanksMayPutTheCallsOfAGroupOnDifferentStreams) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 8);
    StreamHandle* const second = gpu.make_stream();
    const trestleStream_t on_second = wrapped(second);
    for (StreamHandle* const cuda : {ranks[0].cuda, ranks[1].cuda, second})
      ASSERT_TRUE(gpu.device().begin_capture(cuda).ok());
    float* const data[2][3] = {{gpu.pinned(8, 0), gpu.pinned(50, 0), gpu.pinned(300, 0)},
                               {gpu.pinned(8, 0), gpu.pinned(50, 0), gpu.pinned(300, 0)}};
    const size_t counts[] = {8, 50, 300};
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (size_t r = 0; r < 2; ++r) {
      for (size_t i = 0; i < 3; ++i) {
        const trestleStream_t stream = r == 0 && i == 1 ? on_second : ranks[r].stream;
        ASSERT_TRUE(succeeded(all_reduce(data[r][i], counts[i], ranks[r].comm, stream)));
      }
    }
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (Rank& rank : ranks) rank.graph = gpu.device().end_capture(rank.cuda).value();
    trestle::GraphHandle* const graph = gpu.device().end_capture(second).value();
    for (auto& of_rank : data) {
      for (size_t i = 0; i < 3; ++i) std::fill_n(of_rank[i], counts[i], static_cast<float>(i + 1));
    }
    ASSERT_TRUE(gpu.device().launch(graph, second).ok());
    for (Rank& rank : ranks) rank.launch(gpu, 0);
    await(gpu, ranks);
    gpu.await_idle(second);
    for (auto& of_rank : data) {
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(of_rank[i][counts[i] - 1], static_cast<float>(2 * i + 2));
    }
    ASSERT_TRUE(gpu.device().destroy_graph(graph).ok());
    ASSERT_TRUE(succeeded(trestleStreamDestroy(on_second)));
    end(gpu, ranks);
    destroy(comms);
  });
}

// Two communicators have calls at one place, and one of them is aborted: the other goes on.
TEST(CudaGraphs, AFailureOfOneCommunicatorIsNoneOfAnother) {
  with_words([](Gpu& gpu) {
    const auto good = communicators({0, 0});
    const auto bad = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, good, 100);
    float* const others[] = {gpu.pinned(100, 1), gpu.pinned(100, 1)};
    for (Rank& rank : ranks) ASSERT_TRUE(gpu.device().begin_capture(rank.cuda).ok());
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    for (size_t r = 0; r < 2; ++r) {
      ASSERT_TRUE(succeeded(all_reduce(ranks[r].buffer, 100, good[r], ranks[r].stream)));
      ASSERT_TRUE(succeeded(all_reduce(others[r], 100, bad[r], ranks[r].stream)));
    }
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    for (Rank& rank : ranks) rank.graph = gpu.device().end_capture(rank.cuda).value();
    ranks[0].launch(gpu, 0);
    ranks::wait_until([&] { return trestleCommAbort(bad[0]) == trestleSuccess; });
    ranks[1].launch(gpu, 0);
    await(gpu, ranks);
    ASSERT_TRUE(succeeded(trestleCommAbort(bad[1])));
    for (int launch = 1; launch < 4; ++launch) {
      for (Rank& rank : ranks) std::fill_n(rank.buffer, 100, static_cast<float>(launch));
      for (Rank& rank : ranks) rank.launch(gpu, 0);
      await(gpu, ranks);
      for (const Rank& rank : ranks) EXPECT_EQ(rank.buffer[99], static_cast<float>(2 * launch));
    }
    for (trestleComm_t comm : good) {
      trestleResult_t failure = trestleSuccess;
      ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comm, &failure)));
      EXPECT_EQ(failure, trestleSuccess);
    }
    end(gpu, ranks);
    destroy(good);
  });
}

TEST(CudaGraphs, AnAbortLetsALaunchGoOn) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 1000);
    for (Rank& rank : ranks) rank.capture(gpu);
    ranks[0].launch(gpu, 3);  // rank 1 never comes
    ASSERT_TRUE(succeeded(trestleCommAbort(comms[0])));
    gpu.await_idle(ranks[0].cuda);
    ranks[1].launch(gpu, 3);
    gpu.await_idle(ranks[1].cuda);
    ASSERT_TRUE(succeeded(trestleCommAbort(comms[1])));
    end(gpu, ranks);
  });
}

TEST(CudaGraphs, ALaunchThatIsLateNamesItsReplay) {
  const auto body = [](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 1000);
    for (Rank& rank : ranks) rank.capture(gpu);
    for (int launch = 0; launch < 2; ++launch) {
      for (Rank& rank : ranks) rank.launch(gpu, 1);
      await(gpu, ranks);
    }
    ranks[0].launch(gpu, 1);  // rank 1 never comes
    gpu.await_idle(ranks[0].cuda);
    trestleResult_t failure = trestleSuccess;
    ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comms[0], &failure)));
    EXPECT_EQ(failure, trestleTimeout);
    const std::string text = trestleGetLastError(comms[0]);
    EXPECT_NE(text.find("replay 2 of captured operation 0"), std::string::npos) << text;
    EXPECT_NE(text.find("has not called replay 2 of captured operation 0"), std::string::npos) << text;
    EXPECT_NE(text.find("its latest call was replay 1 of captured operation 0"), std::string::npos) << text;
    for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommAbort(comm)));
    end(gpu, ranks);
  };
  with_words(body, {{"TRESTLE_TIMEOUT", std::to_string(ranks::patient_ms(1, 300)) + "ms"}});
}

// One rank has captured the call, the other one makes it at once.
TEST(CudaGraphs, CapturedCallsDoNotMeetOthersAndTheErrorSaysSo) {
  const auto body = [](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Rank rank(gpu, comms[0], 1000);
    rank.capture(gpu);
    rank.launch(gpu, 1);
    float* const other = gpu.pinned(1000, 1);
    ASSERT_TRUE(succeeded(all_reduce(other, 1000, comms[1], nullptr)));
    gpu.await_idle(rank.cuda);
    ranks::wait_until([&] { return trestleCommSynchronize(comms[1]) != trestleSuccess; });
    const std::string text = std::string(trestleGetLastError(comms[0])) + trestleGetLastError(comms[1]);
    EXPECT_NE(text.find("meet captured calls only"), std::string::npos) << text;
    for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommAbort(comm)));
    ASSERT_TRUE(gpu.device().destroy_graph(rank.graph).ok());
    ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
  };
  with_words(body, {{"TRESTLE_TIMEOUT", "300ms"}});
}

TEST(CudaGraphs, CapturesThatDifferAreFound) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = {Rank(gpu, comms[0], 1000), Rank(gpu, comms[1], 999)};
    for (Rank& rank : ranks) rank.capture(gpu);
    for (Rank& rank : ranks) rank.launch(gpu, 1);
    await(gpu, ranks);
    trestleResult_t failures[2];
    for (size_t r = 0; r < 2; ++r) ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comms[r], &failures[r])));
    EXPECT_TRUE(failures[0] == trestleInvalidUsage || failures[1] == trestleInvalidUsage);
    for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommAbort(comm)));
    end(gpu, ranks);
  });
}

// Two instances of one graph at the same time would use the same memory.
TEST(CudaGraphs, LaunchesThatOverlapAreRefused) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Ranks ranks = two_ranks(gpu, comms, 1000);
    for (Rank& rank : ranks) rank.capture(gpu);
    StreamHandle* const other = gpu.make_stream();
    ranks[0].launch(gpu, 1);
    ASSERT_TRUE(gpu.device().launch(ranks[0].graph, other).ok());  // rank 1 has not come, so the first launch is held
    gpu.await_idle(ranks[0].cuda);
    gpu.await_idle(other);
    trestleResult_t failure = trestleSuccess;
    ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comms[0], &failure)));
    EXPECT_EQ(failure, trestleInvalidUsage);
    const std::string text = trestleGetLastError(comms[0]);
    EXPECT_NE(text.find("another launch of the same captured call"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 0 ("), std::string::npos) << text;
    EXPECT_NE(text.find("of captured operation 0 (allreduce"), std::string::npos) << text;
    for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommAbort(comm)));
    end(gpu, ranks);
  });
}

// Wherever the driver fails: the call says so, the graph goes, and the next capture works unless the device is gone.
TEST(CudaGraphs, AFailureInACaptureIsToldAndLeavesNothing) {
  constexpr int kOutOfMemory = 2;
  with_words([](Gpu& gpu) {
    int failures = 0;
    for (bool failed = true; failed;) {
      const auto comms = communicators({0});
      Rank rank(gpu, comms[0], 1000, 0);
      ASSERT_TRUE(gpu.device().begin_capture(rank.cuda).ok());
      driver().fail(failures, kOutOfMemory);
      const trestleResult_t result = all_reduce(rank.buffer, rank.count, rank.comm, rank.stream);
      driver().fail(-1, 0);
      failed = result != trestleSuccess;
      if (failed) {
        EXPECT_NE(std::string(trestleGetLastError(nullptr)), "");
      }
      failures += failed ? 1 : 0;
      ASSERT_TRUE(gpu.device().destroy_graph(gpu.device().end_capture(rank.cuda).value()).ok());
      EXPECT_EQ(driver().objects().graphs, 0);
      trestleResult_t sticky = trestleSuccess;
      ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comms[0], &sticky)));
      if (sticky == trestleSuccess) {
        rank.capture(gpu);
        rank.launch(gpu, 4);
        gpu.await_idle(rank.cuda);
        EXPECT_EQ(rank.result[999], 4);
        ASSERT_TRUE(gpu.device().destroy_graph(rank.graph).ok());
      }
      ASSERT_TRUE(succeeded(trestleStreamDestroy(rank.stream)));
      destroy(comms);
    }
    EXPECT_GT(failures, 5);
  });
}

TEST(CudaGraphs, EventsAndRequestsAreNotCaptured) {
  with_words([](Gpu& gpu) {
    const auto comms = communicators({-1});
    StreamHandle* const cuda = gpu.make_stream();
    const trestleStream_t stream = wrapped(cuda);
    float* const buffer = gpu.pinned(8, 1);
    trestleEvent_t event;
    trestleRequest_t whole, half;
    ASSERT_TRUE(succeeded(trestleEventCreate(&event)));
    ASSERT_TRUE(
        succeeded(trestleAllReduceInit(buffer, buffer, 8, trestleFloat32, trestleSum, comms[0], stream, &whole)));
    driver().capture(cuda, true);
    EXPECT_TRUE(refused(trestleEventRecord(event, stream), trestleInvalidUsage, {"use CUDA's events"}));
    EXPECT_TRUE(refused(trestleRequestStart(whole), trestleInvalidUsage, {"requests cannot be captured"}));
    EXPECT_TRUE(refused(trestleAllReduceStart(buffer, buffer, 8, trestleFloat32, trestleSum, comms[0], stream, &half),
                        trestleInvalidUsage, {"requests cannot be captured"}));
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    ASSERT_TRUE(succeeded(all_reduce(buffer, 8, comms[0], stream)));
    ASSERT_TRUE(succeeded(trestleCommFinalize(comms[0])));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"nor make, split or finalize"}));
    driver().capture(cuda, false);
    ASSERT_TRUE(succeeded(trestleRequestFree(whole)));
    ASSERT_TRUE(succeeded(trestleEventDestroy(event)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    destroy(comms);
  });
}

TEST(CudaGraphs, ADriverWithoutWordsIsRefused) {
  ranks::isolated([] {
    driver().set_word_waits(false);
    Gpu gpu;
    const auto comms = communicators({-1});
    StreamHandle* const cuda = gpu.make_stream();
    const trestleStream_t stream = wrapped(cuda);
    float* const buffer = gpu.pinned(8, 1);
    driver().capture(cuda, true);
    EXPECT_TRUE(refused(all_reduce(buffer, 8, comms[0], stream), trestleInvalidUsage, {"wait for words"}));
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    ASSERT_TRUE(succeeded(all_reduce(buffer, 8, comms[0], stream)));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidUsage, {"wait for words"}));
    driver().capture(cuda, false);
    ASSERT_TRUE(succeeded(all_reduce(buffer, 8, comms[0], stream))) << "nothing was changed";
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    destroy(comms);
  });
}

}  // namespace
}  // namespace cuda_graphs_test
}  // namespace fake_gpu
