// Streams whose calls are ordered on the stream of a device: when they begin, and when the device's stream may go on.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "engine/run/stream_poller.h"
#include "unit/engine/streams.h"

namespace trestle {
namespace outer_stream_test {
namespace {

const Error kGone{Code::kRemoteError, "rank 1 went away"};
const Error kBroken{Code::kUnhandledDeviceError, "the device is broken"};

// What the test knows of a device's stream, and decides. It outlives the outer stream.
struct Script {
  Mutex mutex;
  uint32_t marks TRESTLE_GUARDED_BY(mutex) = 0;
  uint32_t gates TRESTLE_GUARDED_BY(mutex) = 0;
  uint32_t reached TRESTLE_GUARDED_BY(mutex) = 0;
  std::vector<uint32_t> opened TRESTLE_GUARDED_BY(mutex);
  bool refuses TRESTLE_GUARDED_BY(mutex) = false;
  bool broken TRESTLE_GUARDED_BY(mutex) = false;

  void reach(uint32_t mark) {
    const MutexLock lock(mutex);
    reached = mark;
  }
  void refuse(bool refuses_now) {
    const MutexLock lock(mutex);
    refuses = refuses_now;
  }
  void breaks() {
    const MutexLock lock(mutex);
    broken = true;
  }
  std::shared_ptr<GraphCalls> captured;
  std::vector<uint32_t> open_gates() {
    const MutexLock lock(mutex);
    return opened;
  }
  std::pair<uint32_t, uint32_t> put() {
    const MutexLock lock(mutex);
    return {marks, gates};
  }
};

class ScriptedStream : public OuterStream {
 public:
  explicit ScriptedStream(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  int device() const override { return 0; }
  Result<Ticket> put(bool mark, bool gate) override {
    const MutexLock lock(script_->mutex);
    if (script_->refuses) return kBroken;
    Ticket ticket;
    if (mark) ticket.mark = ++script_->marks;
    if (gate) ticket.gate = ++script_->gates;
    return ticket;
  }
  Status may_put() override { return {}; }
  bool has_kernels() const override { return true; }
  bool has_words() const override { return true; }
  // The kernel begins when the script says that its mark is reached.
  Result<Ticket> put_kernel(const std::function<Status(const OuterPlace&)>& submit) override {
    const Ticket ticket = TRY(put(true, false));
    TRY(submit({nullptr, 1, nullptr, *ticket.mark}));
    return ticket;
  }
  Result<std::shared_ptr<CaptureLane>> captured_lane() override { return std::make_shared<CaptureLane>(); }
  // The place is this script's, too.
  Result<std::unique_ptr<OuterStream>> capture(std::shared_ptr<CaptureLane>,
                                               std::shared_ptr<GraphCalls> calls) override {
    const MutexLock lock(script_->mutex);
    if (script_->refuses) return kBroken;
    script_->captured = std::move(calls);
    return std::unique_ptr<OuterStream>(new ScriptedStream(script_));
  }
  Status check() override {
    const MutexLock lock(script_->mutex);
    if (script_->broken) return kBroken;
    return {};
  }
  Result<bool> has_reached(uint32_t mark) override {
    const MutexLock lock(script_->mutex);
    return mark <= script_->reached;
  }
  void open(uint32_t gate) override {
    const MutexLock lock(script_->mutex);
    script_->opened.push_back(gate);
  }

 private:
  const std::shared_ptr<Script> script_;
};

using Gates = std::vector<uint32_t>;

class OuterStreams : public Streams {
 protected:
  void SetUp() override {
    Streams::SetUp();
    auto made = Stream::on(std::make_unique<ScriptedStream>(script_));
    ASSERT_TRUE(made.ok()) << made.error().message;
    stream_ = std::move(made).value();
  }
  void TearDown() override {
    engine_->fail(kGone);
    drive();
  }

  // As a call does it.
  void call(uint64_t number, const std::shared_ptr<Stream>& stream) {
    auto entry = stream->enter();
    ASSERT_TRUE(entry.ok()) << entry.error().message;
    Operation* const made = operation(number);
    stream->enqueue(std::span<Operation* const>(&made, 1), std::move(entry).value());
  }
  void call(uint64_t number) { call(number, stream_); }
  // The poller asks on its own thread. A condition that never comes true ends the test by its time limit.
  void await(const std::function<bool()>& condition) {
    while (!condition()) {
      drive();
      ::sched_yield();
    }
  }
  void await_posted(uint64_t number) {
    await([&] { return gate_->posted() == Numbers{number}; });
  }
  void fail_engine() {
    engine_->fail(kGone);
    engine_->try_progress();
    drive();
  }

  const std::shared_ptr<Script> script_ = std::make_shared<Script>();
  std::shared_ptr<Stream> stream_;
};

TEST_F(OuterStreams, ACallBeginsWhenTheOuterStreamHasComeToIt) {
  call(1);
  stream_->ask_outer();
  EXPECT_EQ(posted(), Numbers{});
  EXPECT_EQ(script_->open_gates(), Gates{});
  script_->reach(1);
  await_posted(1);
  EXPECT_EQ(script_->open_gates(), Gates{}) << "it is not done";
  arrive(1);
  EXPECT_EQ(script_->open_gates(), Gates{1});
  EXPECT_TRUE(stream_->idle());
}

TEST_F(OuterStreams, CallsFollowEachOther) {
  call(1);
  call(2);
  script_->reach(2);
  await_posted(1);
  arrive(1);
  await_posted(2);
  EXPECT_EQ(script_->open_gates(), Gates{1});
  arrive(2);
  EXPECT_EQ(script_->open_gates(), (Gates{1, 2}));
}

TEST_F(OuterStreams, ACallWaitsForTheCallBeforeItAndForTheOuterStream) {
  call(1);
  call(2);
  script_->reach(1);
  await_posted(1);
  arrive(1);
  stream_->ask_outer();
  EXPECT_EQ(posted(), Numbers{}) << "the outer stream has not come to the second one";
  script_->reach(2);
  await_posted(2);
}

class NoCalls : public GraphCalls {
 public:
  bool are_ready() const override { return true; }
  void arrived(bool) override {}
  void ended() override {}
};

TEST_F(OuterStreams, APlaceInAGraphIsAStreamOfItsOwn) {
  const auto calls = std::make_shared<NoCalls>();
  const auto lane = stream_->captured_lane().value();
  const auto launches = stream_->capture(lane, calls);
  ASSERT_TRUE(launches.ok());
  EXPECT_EQ(script_->captured, calls);
  EXPECT_TRUE(stream_->idle());
  call(1, launches.value());
  EXPECT_TRUE(stream_->idle()) << "nothing comes onto the stream that was captured";
  EXPECT_FALSE(launches.value()->idle());
  script_->reach(1);
  launches.value()->ask_outer();  // a place in a graph has no marks, so the poller does not look there
  await_posted(1);
  arrive(1);
  EXPECT_EQ(script_->open_gates(), Gates{1});
  EXPECT_TRUE(launches.value()->idle());
  script_->refuse(true);
  EXPECT_EQ(stream_->capture(lane, calls).error().code, kBroken.code);
}

// Many threads leave errands; each runs after it was left, on one thread, at least once and at most as often.
class Counting : public Errand {
 public:
  void run() override {
    ++runs;
    seen = wanted.load();
  }
  std::atomic<int> runs{0};
  std::atomic<int> wanted{0};
  std::atomic<int> seen{0};
};

TEST_F(OuterStreams, ErrandsRunAfterTheyWereLeft) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 1000;
  const auto shared = std::make_shared<Counting>();
  std::vector<std::shared_ptr<Counting>> own;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) own.push_back(std::make_shared<Counting>());
  for (const auto& mine : own) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        for (Counting* const errand : {mine.get(), shared.get()}) {
          ++errand->wanted;
          StreamPoller::process().leave(*errand);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  await([&] { return shared->seen == kThreads * kTimes; });
  EXPECT_LE(shared->runs, kThreads * kTimes);
  for (const auto& mine : own) await([&] { return mine->seen == kTimes; });
}

TEST_F(OuterStreams, AnErrandThatIsLeftStaysAlive) {
  auto errand = std::make_shared<Counting>();
  std::weak_ptr<Counting> watched = errand;
  errand->wanted = 1;
  StreamPoller::process().leave(*errand);
  errand.reset();
  await([&] { return watched.expired(); });
}

TEST_F(OuterStreams, ARefusedPlaceIsNoPlace) {
  script_->refuse(true);
  EXPECT_EQ(stream_->enter().error().code, kBroken.code);
  EXPECT_FALSE(event_->record_outer(*stream_).ok());
  EXPECT_FALSE(stream_->wait_outer(a_->record()).ok());
  EXPECT_TRUE(stream_->idle());
  script_->refuse(false);
  call(1);
  script_->reach(1);
  await_posted(1);
}

TEST_F(OuterStreams, APlaceThatIsGivenUpHoldsNobody) {
  call(1);
  {
    const auto entry = stream_->enter();
    ASSERT_TRUE(entry.ok());
    call(2);
  }
  EXPECT_EQ(script_->open_gates(), Gates{}) << "the first call is before it";
  script_->reach(1);
  await_posted(1);
  arrive(1);
  EXPECT_EQ(script_->open_gates(), (Gates{1, 2})) << "also without the outer stream at that place";
  script_->reach(3);
  await_posted(2);
  arrive(2);
  EXPECT_EQ(script_->open_gates(), (Gates{1, 2, 3}));
}

TEST_F(OuterStreams, AFailureOpensAllGatesWhereverTheOuterStreamIs) {
  call(1);
  call(2);
  script_->reach(1);
  await_posted(1);
  fail_engine();
  EXPECT_EQ(script_->open_gates(), (Gates{1, 2}));
  EXPECT_TRUE(stream_->idle());
  EXPECT_EQ(stream_->tell_failure()->message, kGone.message);
  EXPECT_FALSE(stream_->waits_for_outer());
}

TEST_F(OuterStreams, AFailureBeforeTheOuterStreamComesOpensTheGateToo) {
  call(1);
  stream_->ask_outer();
  fail_engine();
  EXPECT_EQ(script_->open_gates(), Gates{1});
  EXPECT_EQ(stream_->tell_failure()->message, kGone.message);
}

TEST_F(OuterStreams, ABrokenDeviceFailsTheCall) {
  call(1);
  script_->breaks();
  await([&] { return engine_->pending() == 0 || (clock_.advance_to(clock_.now_ns() + 1'000'000'000), false); });
  await([&] { return stream_->idle(); });
  EXPECT_EQ(script_->open_gates(), Gates{1});
  EXPECT_NE(stream_->tell_failure()->message.find(kBroken.message), std::string::npos);
  EXPECT_NE(engine_->failure()->message.find(kBroken.message), std::string::npos);
}

TEST_F(OuterStreams, AnEventStandsForTheOuterStreamToo) {
  ASSERT_TRUE(event_->record_outer(*stream_).ok());
  const auto of_calls = stream_->record();
  EXPECT_EQ(script_->put(), (std::pair<uint32_t, uint32_t>{1, 0})) << "a mark and no gate";
  EXPECT_FALSE(event_->last()->complete());
  EXPECT_FALSE(of_calls->complete()) << "it is behind it";
  script_->reach(1);
  await([&] { return of_calls->complete(); });
  EXPECT_TRUE(event_->last()->complete());
  EXPECT_EQ(event_->last()->failure(), nullptr);
}

TEST_F(OuterStreams, TheOuterStreamWaitsForAnEventOfAnotherStream) {
  a_->enqueue({operation(1)});
  ASSERT_TRUE(stream_->wait_outer(a_->record()).ok());
  EXPECT_EQ(script_->put(), (std::pair<uint32_t, uint32_t>{0, 1})) << "a gate and no mark";
  EXPECT_EQ(script_->open_gates(), Gates{});
  drive();
  arrive(1);
  EXPECT_EQ(script_->open_gates(), Gates{1});
}

TEST_F(OuterStreams, OperationsOfOneItemOpenItsGateTogether) {
  auto entry = stream_->enter();
  ASSERT_TRUE(entry.ok());
  Operation* const both[] = {operation(1), operation(2)};
  stream_->enqueue(both, std::move(entry).value());
  script_->reach(1);
  await([&] { return gate_->posted() == (Numbers{1, 2}); });
  arrive(2);
  EXPECT_EQ(script_->open_gates(), Gates{});
  arrive(1);
  EXPECT_EQ(script_->open_gates(), Gates{1});
}

TEST_F(OuterStreams, AStreamThatIsDroppedHoldsNobody) {
  {
    auto made = Stream::on(std::make_unique<ScriptedStream>(script_));
    ASSERT_TRUE(made.ok());
    ASSERT_TRUE(made.value()->wait_outer(a_->record()).ok()) << "complete at once";
    a_->enqueue({operation(1)});
    ASSERT_TRUE(made.value()->wait_outer(a_->record()).ok());
  }
  EXPECT_EQ(script_->open_gates(), (Gates{1, 2}));
  drive();
  arrive(1);
}

TEST_F(OuterStreams, WithoutAnOuterStreamNothingIsAsked) {
  const auto entry = a_->enter();
  ASSERT_TRUE(entry.ok());
  EXPECT_TRUE(a_->idle());
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  EXPECT_TRUE(event_->last()->complete());
  call(1, a_);
  EXPECT_EQ(posted(), Numbers{1});
  arrive(1);
}

TEST_F(OuterStreams, ManyStreamsEachGoTheirWay) {
  constexpr size_t kStreams = 20;
  std::vector<std::shared_ptr<Script>> scripts;
  std::vector<std::shared_ptr<Stream>> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    scripts.push_back(std::make_shared<Script>());
    auto made = Stream::on(std::make_unique<ScriptedStream>(scripts.back()));
    ASSERT_TRUE(made.ok());
    streams.push_back(std::move(made).value());
    call(i + 1, streams.back());
  }
  for (size_t i = kStreams; i-- > 0;) {
    scripts[i]->reach(1);
    await_posted(i + 1);
    arrive(i + 1);
    EXPECT_EQ(scripts[i]->open_gates(), Gates{1});
  }
}

}  // namespace
}  // namespace outer_stream_test
}  // namespace trestle
