// Streams without memory: a call is queued as a whole or not at all, and what is queued comes to its end.
#include <gtest/gtest.h>

#include <future>
#include <new>
#include <string>

#include "support/allocations.h"
#include "unit/engine/two_engines.h"

namespace trestle {
namespace {

class StreamMemory : public TwoEngines {
 protected:
  void SetUp() override {
    TwoEngines::SetUp();
    for (const auto& stream : {a_, b_, c_}) stream->record();  // so that each has an item that it can use again
  }
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
  // comes before it, with memory, and `check` afterwards.
  template <class Prepare, class F, class Check>
  void at_every_allocation(Prepare&& prepare, F&& call, Check&& check) {
    for (const bool stays : {false, true}) {
      long k = 0;
      for (bool failed = true; failed; ++k) {
        SCOPED_TRACE((stays ? "from allocation " : "allocation ") + std::to_string(k));
        other_.reset();
        engine_.reset();
        a_ = std::make_shared<Stream>();
        b_ = std::make_shared<Stream>();
        c_ = std::make_shared<Stream>();
        SetUp();
        prepare();
        failed = allocations::short_of_memory(k, stays, call);
        check();
        if (HasFailure()) return;
      }
      EXPECT_GT(k, 1) << "it has needed no memory at all";
    }
  }
};

// The caller hears of it only if nothing was queued: then it takes the operation back.
TEST_F(StreamMemory, ACallBehindAFailureIsQueuedOrNot) {
  Operation* next = nullptr;
  bool refused = false;
  at_every_allocation(
      [&] {
        a_->enqueue({operation(1)});
        drive_both();
        engine_->fail(kGone);
        drive_both();
        ASSERT_TRUE(a_->failed());
        next = other(7);
        refused = false;
      },
      [&] {
        try {
          a_->enqueue({next});
        } catch (const std::bad_alloc&) {
          refused = true;
        }
      },
      [&] {
        if (refused) {
          EXPECT_TRUE(a_->idle());
          other_->fail_without_memory();
          other_->retire(next);
        }
        expect_ended(*other_);
        EXPECT_EQ(a_->tell_failure()->code, kGone.code);
      });
}

TEST_F(StreamMemory, ARecordAndAWaitAreQueuedOrNot) {
  std::shared_ptr<Recording> record;
  at_every_allocation(
      [&] {
        a_->enqueue({operation(1)});
        event_->record(*a_);
        record = nullptr;
      },
      [&] {
        try {
          b_->wait_for(event_->last());
          record = b_->record();
        } catch (const std::bad_alloc&) {
        }
      },
      [&] {
        drive_both();
        gate_->arrive(1);
        drive_both();
        EXPECT_TRUE(a_->idle() && b_->idle());
        EXPECT_TRUE(record == nullptr || record->complete());
      });
}

// A failure reaches all streams that wait for its stream, and all operations behind it.
TEST_F(StreamMemory, AFailureReachesThoseThatWait) {
  std::shared_ptr<Recording> behind;
  at_every_allocation(
      [&] {
        a_->enqueue({operation(1)});
        event_->record(*a_);
        for (const auto& stream : {b_, c_}) stream->wait_for(event_->last());
        b_->enqueue({other(7)});
        c_->enqueue({other(8)});
        behind = c_->record();
        drive_both();
        engine_->fail(kGone);
      },
      [&] { engine_->try_progress(); },
      [&] {
        expect_ended(*other_);
        EXPECT_TRUE(event_->last()->complete());
        ASSERT_TRUE(behind->complete());
        ASSERT_TRUE(behind->failure().has_value());
        EXPECT_EQ(behind->failure()->code, kGone.code);
        for (const auto& stream : {a_, b_, c_}) EXPECT_EQ(stream->tell_failure()->code, kGone.code);
      });
}

// One that its stream never reaches tells that it was aborted.
TEST_F(StreamMemory, ANotificationOutlivesItsStream) {
  std::promise<Code> told;
  a_->enqueue({operation(1)});
  b_->wait_for(a_->record());
  std::shared_ptr<Recording> record = b_->record();
  ASSERT_TRUE(record
                  ->notify([&told](const std::optional<Error>& failure, const std::weak_ptr<Engine>&) {
                    told.set_value(failure ? failure->code : Code::kSuccess);
                  })
                  .ok());
  EXPECT_TRUE(allocations::short_of_memory(0, true, [&] {
    b_.reset();
    record.reset();
  }));
  EXPECT_EQ(told.get_future().get(), Code::kAborted);
  drive();
  arrive(1);
}

}  // namespace
}  // namespace trestle
