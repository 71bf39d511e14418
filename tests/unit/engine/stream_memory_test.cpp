// Streams and engines without memory, on a thread of the program: what std::bad_alloc leaves half done comes to its
// end, and the communicator fails.
#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "engine/run/progress.h"
#include "support/allocations.h"
#include "unit/engine/two_engines.h"

namespace trestle {
namespace stream_memory_test {
namespace {

class StreamMemory : public TwoEngines {
 protected:
  // All work comes to its end, and everybody who waits hears of a failure.
  void expect_ended(const Engine& engine) {
    drive_both();
    pass_a_moment();
    EXPECT_EQ(engine_->pending(), 0u);
    EXPECT_EQ(other_->pending(), 0u);
    for (const auto& stream : {a_, b_, c_}) EXPECT_TRUE(stream->idle());
    ASSERT_TRUE(engine.failed());
    EXPECT_TRUE(engine.failure()->code == kGone.code || engine.failure()->code == Code::kSystemError);
  }
  // Does `call` with the k-th allocation refused, and with all from the k-th on, until it needs no more. `prepare`
  // comes before it, with memory, and `check(refused, thrown)` afterwards.
  template <class Prepare, class F, class Check>
  void at_every_allocation(Prepare&& prepare, F&& call, Check&& check) {
    (void)Progress::process();  // a communicator has made it
    for (const bool stays : {false, true}) {
      long k = 0;
      for (bool refused = true; refused; ++k) {
        SCOPED_TRACE((stays ? "from allocation " : "allocation ") + std::to_string(k));
        other_.reset();
        engine_.reset();
        a_ = std::make_shared<Stream>();
        b_ = std::make_shared<Stream>();
        c_ = std::make_shared<Stream>();
        SetUp();
        prepare();
        bool thrown = false;
        refused = allocations::short_of_memory(k, stays, [&] {
          try {
            call();
          } catch (const std::bad_alloc&) {
            thrown = true;
          }
        });
        check(refused, thrown);
        if (HasFailure()) return;
      }
      EXPECT_GT(k, 1) << "it has needed no memory at all";
    }
  }
};

// The caller hears of it only if nothing was queued: then it takes the operation back.
TEST_F(StreamMemory, ACallBehindAFailureIsQueuedOrNot) {
  Operation* next = nullptr;
  at_every_allocation(
      [&] {
        a_->enqueue({operation(1)});
        drive_both();
        engine_->fail(kGone);
        drive_both();
        ASSERT_TRUE(a_->failed());
        next = other(7);
      },
      [&] {
        const std::vector<Operation*> several(1, next);
        a_->enqueue(several);
      },
      [&](bool refused, bool thrown) {
        EXPECT_EQ(thrown, refused);
        if (thrown) {
          EXPECT_TRUE(a_->idle());
          other_->fail_without_memory();
          other_->retire(next);
        }
        expect_ended(*other_);
        EXPECT_EQ(a_->tell_failure()->code, kGone.code);
      });
}

// The rounds of a failed engine need none, so all that waits for it ends. Its failure reaches all streams that wait for
// its stream, and all operations behind it.
TEST_F(StreamMemory, AFailedEngineEndsItsWorkWithoutMemory) {
  (void)Progress::process();  // a communicator has made it
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  for (const auto& stream : {b_, c_}) stream->wait_for(event_->last());
  b_->enqueue({other(7)});
  c_->enqueue({other(8)});
  b_->enqueue({operation(2)});  // is queued behind the other engine's
  const auto behind = c_->record();
  engine_->fail(kGone);
  EXPECT_FALSE(allocations::short_of_memory(0, true, [this] { drive(); }));
  EXPECT_EQ(engine_->pending(), 0u);
  expect_ended(*other_);
  EXPECT_TRUE(event_->last()->complete());
  ASSERT_TRUE(behind->complete());
  ASSERT_NE(behind->failure(), nullptr);
  EXPECT_EQ(behind->failure()->code, kGone.code);
  for (const auto& stream : {a_, b_, c_}) EXPECT_EQ(stream->tell_failure()->code, kGone.code);
}

// What a round leaves half done when it is cut off, the next ones end, with or without memory.
TEST_F(StreamMemory, ARoundThatIsCutOffFailsItsEngine) {
  at_every_allocation(
      [&] {
        a_->enqueue({operation(1), operation(2)});
        a_->enqueue({operation(3)});
      },
      [&] { drive(); },
      [&](bool refused, bool thrown) {
        EXPECT_FALSE(thrown);
        EXPECT_EQ(engine_->pending() == 0, refused);
        if (!refused) engine_->fail(kGone);
        expect_ended(*engine_);
        EXPECT_EQ(a_->tell_failure()->code, refused ? Code::kSystemError : kGone.code);
      });
}

// Other ranks may have made the call already.
TEST_F(StreamMemory, ACallWithoutStagingFailsItsCommunicator) {
  Prepared call = *prepared_;
  call.staging_bytes = uint64_t{1} << 60;
  const auto claims = engine_->reserve(call, Lane{a_, 0});
  ASSERT_FALSE(claims.ok());
  EXPECT_EQ(claims.error().code, Code::kSystemError);
  EXPECT_TRUE(engine_->failed());
}

// Its device does not say how far it is.
class LostStream : public OuterStream {
 public:
  int device() const override { return 0; }
  Result<Ticket> put(bool, bool) override { return Ticket{1, 1}; }
  Status may_put() override { return {}; }
  Result<Ticket> put_kernel(const std::function<Status(const OuterPlace&)>&) override { return Ticket{}; }
  bool has_kernels() const override { return false; }
  bool has_words() const override { return false; }
  Result<std::shared_ptr<CaptureLane>> captured_lane() override { return std::shared_ptr<CaptureLane>(); }
  Result<std::unique_ptr<OuterStream>> capture(std::shared_ptr<CaptureLane>, std::shared_ptr<GraphCalls>) override {
    return kGone;
  }
  Status check() override { return {}; }
  Result<bool> has_reached(uint32_t) override { return Error{Code::kUnhandledDeviceError, "lost"}; }
  void open(uint32_t) override {}
};

TEST_F(StreamMemory, ACallOnALostOuterStreamIsQueuedOrNot) {
  std::shared_ptr<Stream> stream;
  std::optional<StreamEntry> entry;
  Operation* next = nullptr;
  at_every_allocation(
      [&] {
        stream = Stream::on(std::make_unique<LostStream>()).value();
        entry.emplace(stream->enter().value());
        next = operation(1);
      },
      [&] { stream->enqueue(std::span<Operation* const>(&next, 1), std::move(*entry)); },
      [&](bool refused, bool thrown) {
        EXPECT_EQ(thrown, refused);
        entry.reset();
        if (thrown) {
          EXPECT_TRUE(stream->idle());
          engine_->retire(next);
        }
        drive();
        EXPECT_EQ(engine_->pending(), 0u);
        EXPECT_TRUE(stream->idle());
      });
}

}  // namespace
}  // namespace stream_memory_test
}  // namespace trestle
