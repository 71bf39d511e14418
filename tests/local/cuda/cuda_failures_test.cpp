// What goes wrong with calls on streams of a device: whatever happens, the stream goes on and the failure is told.
#include <functional>
#include <string>
#include <thread>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_failures_test {
namespace {

constexpr int kUnknownError = 999;  // CUDA_ERROR_UNKNOWN

// The call of one rank, for which the other one never comes. What is behind it on the stream waits.
struct Lonely {
  Lonely(Gpu& on, const std::vector<trestleComm_t>& comms)
      : gpu(on), cuda(gpu.make_stream()), stream(wrapped(cuda)), from(gpu.pinned(10, 7)), to(gpu.pinned(10, 0)) {
    EXPECT_TRUE(succeeded(all_reduce(from, 10, comms[0], stream)));
    gpu.copy(to, from, 10, cuda);
  }
  void expect_released() {
    gpu.await_idle(cuda);
    EXPECT_EQ(to[9], 7);
  }
  Gpu& gpu;
  StreamHandle* cuda;
  trestleStream_t stream;
  float* from;
  float* to;
};

TEST(CudaFailures, AnAbortLetsTheStreamGoOn) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Lonely lonely(gpu, comms);
    EXPECT_EQ(trestleStreamQuery(lonely.stream), trestleInProgress);
    ASSERT_TRUE(succeeded(trestleCommAbort(comms[0])));
    lonely.expect_released();
    EXPECT_TRUE(refused(trestleStreamSynchronize(lonely.stream), trestleAborted, {}));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(lonely.stream)));
    trestleCommAbort(comms[1]);
  });
}

TEST(CudaFailures, AnotherRanksAbortToo) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    Lonely lonely(gpu, comms);
    ASSERT_TRUE(succeeded(trestleCommAbort(comms[1])));
    lonely.expect_released();
    EXPECT_NE(trestleStreamSynchronize(lonely.stream), trestleSuccess);
    ASSERT_TRUE(succeeded(trestleStreamDestroy(lonely.stream)));
    trestleCommAbort(comms[0]);
  });
}

TEST(CudaFailures, AnAbortEndsCallsThatTheStreamHasNotComeTo) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0, 0});
    driver().hold_streams(true);
    Lonely lonely(gpu, comms);
    EXPECT_TRUE(succeeded(all_reduce(lonely.from, 10, comms[0], lonely.stream)));
    ASSERT_TRUE(succeeded(trestleCommAbort(comms[0])));
    EXPECT_TRUE(refused(trestleStreamSynchronize(lonely.stream), trestleAborted, {}));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(lonely.stream)));
    driver().hold_streams(false);
    lonely.expect_released();
    trestleCommAbort(comms[1]);
  });
}

TEST(CudaFailures, ADeadlineLetsTheStreamGoOn) {
  const int64_t timeout_ms = ranks::patient_ms(2, 1500);
  both_ways([&](Gpu& gpu) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.timeoutMs = timeout_ms;
    config.device = 0;
    trestleComm_t comms[2];
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
    Lonely lonely(gpu, {comms[0], comms[1]});
    lonely.expect_released();
    EXPECT_TRUE(refused(trestleStreamSynchronize(lonely.stream), trestleTimeout, {}));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(lonely.stream)));
    for (trestleComm_t comm : comms) trestleCommAbort(comm);
  });
}

// The program's own work holds up one rank's stream. The other rank says so.
TEST(CudaFailures, ADeadlineNamesTheDeviceThatHasNotComeToTheCall) {
  const int64_t timeout_ms = ranks::patient_ms(2, 1500);
  both_ways([&](Gpu& gpu) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.timeoutMs = timeout_ms;
    config.device = 0;
    trestleComm_t comms[2];
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
    driver().hold_streams(true);
    Lonely held(gpu, {comms[1]});
    float* const buffer = gpu.pinned(10, 7);
    ASSERT_TRUE(succeeded(all_reduce(buffer, 10, comms[0], nullptr)));
    EXPECT_EQ(trestleCommSynchronize(comms[0]), trestleTimeout);
    const std::string text = trestleGetLastError(comms[0]);
    EXPECT_TRUE(ranks::contains(text, "has called operation 0, but its CUDA stream on device 0 has not come to it"))
        << text;
    driver().hold_streams(false);
    held.expect_released();
    EXPECT_TRUE(refused(trestleStreamSynchronize(held.stream), trestleTimeout, {}));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(held.stream)));
    for (trestleComm_t comm : comms) trestleCommAbort(comm);
  });
}

TEST(CudaFailures, ACommunicatorIsDestroyedBeforeTheStreamHasComeToItsCall) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0});
    StreamHandle* const cuda = gpu.make_stream();
    const trestleStream_t stream = wrapped(cuda);
    float* const from = gpu.pinned(10, 7);
    float* const buffer = gpu.pinned(10, 0);
    gpu.copy(buffer, from, 10, cuda);
    ASSERT_TRUE(succeeded(all_reduce(buffer, 10, comms[0], stream)));
    destroy(comms);  // waits for it
    EXPECT_EQ(buffer[9], 7);
    EXPECT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    gpu.await_idle(cuda);
  });
}

TEST(CudaFailures, ABrokenDeviceFailsTheCallsOnItsStreams) {
  both_ways([](Gpu& gpu) {
    const auto comms = communicators({0});
    driver().hold_streams(true);
    const trestleStream_t stream = wrapped(gpu.make_stream());
    float* const buffer = gpu.pinned(10, 7);
    ASSERT_TRUE(succeeded(all_reduce(buffer, 10, comms[0], stream)));
    driver().break_device(kUnknownError);
    EXPECT_TRUE(refused(trestleStreamSynchronize(stream), trestleUnhandledDeviceError, {"cu"}));
    EXPECT_NE(all_reduce(buffer, 10, comms[0], stream), trestleSuccess);
    trestleStreamDestroy(stream);
    trestleCommAbort(comms[0]);
  });
}

TEST(CudaFailures, StreamsOfOthersAreRefused) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({0});
    float* const buffer = gpu.pinned(10, 7);
    trestleStream_t stream;
    EXPECT_TRUE(refused(trestleStreamWrapCuda(nullptr, nullptr), trestleInvalidArgument, {"stream is NULL"}));
    EXPECT_TRUE(
        refused(trestleStreamWrapCuda(&stream, driver().foreign_stream()), trestleInvalidArgument, {"primary"}));
    StreamHandle* const cuda = gpu.make_stream(1);
    ASSERT_TRUE(succeeded(trestleStreamWrapCuda(&stream, cuda)));
    EXPECT_TRUE(refused(all_reduce(buffer, 10, comms[0], stream), trestleInvalidArgument,
                        {"AllReduce", "device 1", "device is 0"}));
    const auto without = communicators({-1});
    ASSERT_TRUE(succeeded(all_reduce(buffer, 10, without[0], stream))) << "it has no device, so every stream is right";
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    gpu.await_idle(cuda, 1);
    destroy(without);
    destroy(comms);
  });
}

TEST(CudaFailures, AStreamTakesNoMoreCallsAheadThanItsDriverHasRoomFor) {
  ranks::isolated([] {
    driver().set_word_waits(false);
    Gpu gpu;
    const auto comms = communicators({-1});
    const trestleStream_t stream = wrapped(gpu.make_stream());
    float number = 1;
    driver().hold_streams(true);
    int taken = 0;
    while (all_reduce(&number, 1, comms[0], stream) == trestleSuccess) ASSERT_LT(++taken, 10'000);
    EXPECT_TRUE(refused(all_reduce(&number, 1, comms[0], stream), trestleInvalidUsage, {"synchronize first"}));
    driver().hold_streams(false);
    ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    EXPECT_TRUE(succeeded(all_reduce(&number, 1, comms[0], stream)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    destroy(comms);
  });
}

// Everything that asks the driver, on a communicator of its own.
void use_everything(StreamHandle* cuda) {
  const auto comms = communicators({-1});
  float buffer[10] = {};
  trestleStream_t stream = nullptr;
  trestleEvent_t event;
  ASSERT_TRUE(succeeded(trestleEventCreate(&event)));
  if (trestleStreamWrapCuda(&stream, cuda) == trestleSuccess) {
    all_reduce(buffer, 10, comms[0], stream);
    trestleEventRecord(event, stream);
    trestleStreamWaitEvent(stream, event);
    trestleGroupStart();
    all_reduce(buffer, 10, comms[0], stream);
    trestleGroupEnd();
    trestleStreamSynchronize(stream);
    trestleStreamDestroy(stream);
  }
  trestleEventDestroy(event);
  EXPECT_TRUE(succeeded(trestleCommDestroy(comms[0])));
}

TEST(CudaFailures, EachCallOfTheDriverMayFail) {
  both_ways([](Gpu& gpu) {
    StreamHandle* const cuda = gpu.make_stream();
    use_everything(cuda);  // opens the device
    const int before = driver().calls();
    use_everything(cuda);
    const int calls = driver().calls() - before;
    EXPECT_GT(calls, 10);
    for (int nth = 0; nth < calls + 5; ++nth) {
      SCOPED_TRACE(nth);
      driver().fail(nth, kUnknownError);
      use_everything(cuda);
      driver().fail(-1, 0);
      gpu.await_idle(cuda);
    }
  });
}

// ---- A thread of the program waits in the driver for a stream that is held, and the driver lets nobody submit
// anything meanwhile. So the calls that hold the stream cannot go on, nor can what would end them.

struct Circle {
  static constexpr size_t kMany = 1 << 20;

  explicit Circle(Gpu& on) : gpu(on) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.timeoutMs = 2000;  // the driver is waited for a little longer
    config.device = 0;
    EXPECT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
    for (int r = 0; r < 2; ++r) {
      buffers[r] = reinterpret_cast<float*>(gpu.device().allocate(kMany * sizeof(float)).value());
      cuda[r] = gpu.make_stream();
      streams[r] = wrapped(cuda[r]);
    }
  }
  void call(int rank) { EXPECT_TRUE(succeeded(all_reduce(buffers[rank], kMany, comms[rank], streams[rank]))); }
  // Runs the program's call of the driver until it comes back. begin: when it waits.
  void wait_in_driver(const std::function<void()>& begin) {
    driver().let_slow_calls_wait(true);
    driver().let_slow_calls_hold_up_others(true);
    std::thread program([this] { EXPECT_TRUE(gpu.device().allocate(1000).ok()); });
    ranks::wait_until([] { return driver().slow_calls_waiting() > 0; });
    begin();
    program.join();
    driver().let_slow_calls_hold_up_others(false);
    driver().let_slow_calls_wait(false);
  }
  void end() {
    for (int r = 0; r < 2; ++r) {
      EXPECT_TRUE(succeeded(trestleCommAbort(comms[r])));
      gpu.await_idle(cuda[r]);
      trestleStreamSynchronize(streams[r]);  // tells its failure, if nobody has asked
      EXPECT_TRUE(succeeded(trestleStreamDestroy(streams[r])));
    }
    EXPECT_EQ(driver().misuse(), "");
  }

  Gpu& gpu;
  trestleComm_t comms[2];
  float* buffers[2];
  StreamHandle* cuda[2];
  trestleStream_t streams[2];
};

TEST(CudaFailures, ADriverThatKeepsEveryThreadWaitingIsToldAndLetGo) {
  ranks::isolated([] {
    Gpu gpu;
    Circle circle(gpu);
    driver().hold_streams(true);
    for (const int rank : {0, 1}) circle.call(rank);
    circle.wait_in_driver([] { driver().hold_streams(false); });
    for (const trestleStream_t stream : circle.streams) EXPECT_NE(trestleStreamSynchronize(stream), trestleSuccess);
    const std::string said =
        std::string(trestleGetLastError(circle.comms[0])) + "; " + std::string(trestleGetLastError(circle.comms[1]));
    EXPECT_TRUE(ranks::contains(said, "CUDA's driver has not returned from a call")) << said;
    EXPECT_TRUE(ranks::contains(said, "CUDA_MODULE_LOADING=EAGER")) << said;
    circle.end();
  });
}

// The deadline passes, and the end of the call asks the driver too.
TEST(CudaFailures, ADriverThatKeepsTheEndOfACallWaitingLetsItGo) {
  ranks::isolated([] {
    Gpu gpu;
    Circle circle(gpu);
    circle.call(0);  // rank 1 never does
    circle.wait_in_driver([] {});
    EXPECT_TRUE(refused(trestleStreamSynchronize(circle.streams[0]), trestleTimeout, {"rank 1"}));
    circle.end();
  });
}

// The thread waits for a stream of another communicator as well, which is well. What that one has not done must not
// count as done.
TEST(CudaFailures, ADriverThatIsLetGoFailsTheStreamsThatWaitForOthers) {
  ranks::isolated([] {
    Gpu gpu;
    Circle circle(gpu);
    const auto others = communicators({-1, -1});
    float number = 1;
    trestleStream_t of_others = nullptr;
    trestleEvent_t event = nullptr;
    ASSERT_TRUE(succeeded(trestleStreamCreate(&of_others)));
    ASSERT_TRUE(succeeded(trestleEventCreate(&event)));
    ASSERT_TRUE(succeeded(all_reduce(&number, 1, others[0], of_others)));  // rank 1 is late
    ASSERT_TRUE(succeeded(trestleEventRecord(event, of_others)));
    StreamHandle* const cuda = gpu.make_stream();
    const trestleStream_t waits = wrapped(cuda);
    ASSERT_TRUE(succeeded(trestleStreamWaitEvent(waits, event)));
    driver().hold_streams(true);
    for (const int rank : {0, 1}) circle.call(rank);
    circle.wait_in_driver([] { driver().hold_streams(false); });
    gpu.await_idle(cuda);
    float late = 1;
    ASSERT_TRUE(succeeded(all_reduce(&late, 1, others[1], nullptr)));
    EXPECT_NE(trestleStreamSynchronize(waits), trestleSuccess) << "what it waited for was not done then";
    EXPECT_TRUE(succeeded(trestleStreamDestroy(waits)));
    circle.end();
    EXPECT_TRUE(succeeded(trestleStreamSynchronize(of_others))) << "this communicator is well";
    EXPECT_TRUE(succeeded(trestleStreamDestroy(of_others)));
    EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
    destroy(others);
  });
}

}  // namespace
}  // namespace cuda_failures_test
}  // namespace fake_gpu
