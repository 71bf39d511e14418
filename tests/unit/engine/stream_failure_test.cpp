// The effects of a failure on later work of its stream: records and operations of other communicators. What events and
// streams tell of it has tests/local/api/event_failure_test.cpp.
#include <gtest/gtest.h>

#include <string>

#include "unit/engine/two_engines.h"

namespace trestle {
namespace stream_failure_test {
namespace {

class StreamFailures : public TwoEngines {
 protected:
  void fail() {
    engine_->fail(kGone);
    engine_->try_progress();
    drive_both();
  }
  Numbers posted_by_other() {
    drive_both();
    return other_gate_->posted();
  }
  void other_arrives(uint64_t number) {
    other_gate_->arrive(number);
    drive_both();
  }
  // "": it has completed without error.
  static std::string failure_of(const std::shared_ptr<Recording>& recording) {
    if (!recording->complete()) return "not complete";
    return recording->failure() ? recording->failure()->message : "";
  }
  std::string told(const std::shared_ptr<Stream>& stream) {
    const auto failure = stream->tell_failure();
    return failure ? failure->message : "";
  }
  void expect_other_held_back(uint64_t number) {
    EXPECT_EQ(posted_by_other(), Numbers{});
    EXPECT_FALSE(other_->failed()) << "its own control mesh may tell the cause yet";
    pass_a_moment();
    EXPECT_EQ(other_->pending(), 0u);
    ASSERT_TRUE(other_->failed());
    EXPECT_EQ(other_->failure()->code, Code::kRemoteError);
    const std::string sentence = other_->failure()->message;
    for (const std::string& fact : {"operation " + std::to_string(number) + " ", std::string("of rank 0"),
                                    std::string("was not run"), kGone.message}) {
      EXPECT_NE(sentence.find(fact), std::string::npos) << fact << " is not in: " << sentence;
    }
  }
};

TEST_F(StreamFailures, AnEventThatIsRecordedAgainForgetsItButNotWhoWaitsForTheEarlierRecord) {
  a_->enqueue({operation(1)});
  ASSERT_TRUE(event_->record_outer(*a_).ok());
  b_->wait_for(event_->last());
  ASSERT_TRUE(event_->record_outer(*c_).ok());
  EXPECT_EQ(failure_of(event_->last()), "");
  fail();
  EXPECT_EQ(failure_of(event_->last()), "");
  EXPECT_EQ(told(b_), kGone.message);
}

// A rank that died for one communicator has also died for the other, which names it by its own numbers.
TEST_F(StreamFailures, ACommunicatorReportsItsOwnFailureBeforeThatOfItsStream) {
  a_->enqueue({operation(1)});
  a_->enqueue({other(7)});
  fail();
  EXPECT_FALSE(other_->failed());
  other_->fail({Code::kRemoteError, "rank 2 died"});
  drive_both();
  EXPECT_EQ(other_->failure()->message, "rank 2 died");
  EXPECT_EQ(other_->pending(), 0u);
}

// The abort of one communicator does not abort another one, whose ranks must hear the reason.
TEST_F(StreamFailures, WhatComesBehindAnAbortIsNotAborted) {
  a_->enqueue({operation(1)});
  a_->enqueue({other(7)});
  engine_->fail({Code::kAborted, kGone.message});
  engine_->try_progress();
  expect_other_held_back(7);
  EXPECT_EQ(a_->tell_failure()->code, Code::kAborted);
}

TEST_F(StreamFailures, WhatIsInTheSameGroupRuns) {
  a_->enqueue({operation(1), other(7)});
  fail();
  EXPECT_EQ(posted_by_other(), Numbers{7});
  const auto behind = a_->record();
  EXPECT_EQ(failure_of(behind), "not complete");
  other_arrives(7);
  EXPECT_FALSE(other_->failed());
  EXPECT_EQ(failure_of(behind), kGone.message);
}

TEST_F(StreamFailures, OfAQueuedOperationIsNoAffairOfWhatIsBeforeIt) {
  a_->enqueue({other(7)});
  const auto before = a_->record();
  a_->enqueue({operation(1)});
  const auto behind = a_->record();
  EXPECT_EQ(posted_by_other(), Numbers{7});
  fail();
  EXPECT_EQ(engine_->pending(), 0u) << "the end of its communicator does not wait";
  EXPECT_EQ(failure_of(before), "not complete");
  other_arrives(7);
  EXPECT_FALSE(other_->failed());
  EXPECT_EQ(failure_of(before), "");
  EXPECT_EQ(failure_of(behind), kGone.message);
}

// One member of a waiting group is taken back. The other one runs later.
TEST_F(StreamFailures, OfAQueuedGroupLeavesItsOthersAlone) {
  a_->enqueue({other(6)});
  a_->enqueue({operation(1), other(7)});
  const auto behind = a_->record();
  fail();
  other_arrives(6);
  EXPECT_EQ(posted_by_other(), Numbers{7});
  other_arrives(7);
  EXPECT_FALSE(other_->failed());
  EXPECT_EQ(failure_of(behind), kGone.message);
}

TEST_F(StreamFailures, IsNotForgottenWhileSomethingIsBehindIt) {
  b_->enqueue({other(6)});
  ASSERT_TRUE(event_->record_outer(*b_).ok());
  a_->enqueue({operation(1)});
  fail();
  a_->wait_for(event_->last());
  a_->enqueue({other(7)});
  EXPECT_EQ(told(a_), kGone.message);
  EXPECT_EQ(posted_by_other(), Numbers{6});
  other_arrives(6);
  expect_other_held_back(7);
}

}  // namespace
}  // namespace stream_failure_test
}  // namespace trestle
