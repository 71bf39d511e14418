// DeFT's queues: the four cases, and that no batch is lost or counted twice.
#include <gtest/gtest.h>

#include <set>

#include "gradient/deft/queues.h"
#include "unit/gradient/deft_systems.h"

namespace trestle {
namespace {

std::set<uint32_t> ids_of(const DeftSends& sends) {
  std::set<uint32_t> ids;
  for (const std::vector<uint32_t>& link : sends) {
    for (const uint32_t id : link) EXPECT_TRUE(ids.insert(id).second) << "sent twice";
  }
  return ids;
}

// Follows the machine as an executor would: which batches the current set holds, and which of its messages were sent.
class Follower {
 public:
  explicit Follower(DeftQueues& queues) : queues_(queues) {}

  void iterate() {
    send(ids_of(queues_.forward().sends));
    const DeftPass pass = queues_.backward();
    send(ids_of(pass.sends));
    future_.push_back(iteration_);
    if (pass.update_batches != 0) {
      EXPECT_EQ(sent_.size(), queues_.items().size()) << "an update before all its messages";
      EXPECT_EQ(current_.size(), pass.update_batches);
      for (const uint32_t batch : current_) EXPECT_EQ(batch, updated_++) << "lost, doubled or out of order";
      EXPECT_LT(current_.back(), iteration_) << "DeFT's updates are at least one iteration old";
      current_.clear();
    }
    if (pass.next_batches != 0) {
      EXPECT_TRUE(current_.empty());
      EXPECT_EQ(future_.size(), pass.next_batches);
      current_ = std::exchange(future_, {});
      sent_.clear();
      send(ids_of(pass.next_sends));
    } else {
      EXPECT_TRUE(ids_of(pass.next_sends).empty());
      EXPECT_EQ(pass.update_batches, 0u);
    }
    ++iteration_;
    EXPECT_EQ(updated_ + queues_.pending(), iteration_);
    EXPECT_EQ(queues_.state().current_batches, current_.size());
    EXPECT_EQ(queues_.state().future_batches, future_.size());
  }

  uint32_t updated() const { return updated_; }

 private:
  void send(const std::set<uint32_t>& ids) {
    for (const uint32_t id : ids) EXPECT_TRUE(sent_.insert(id).second) << "sent twice in one set";
  }

  DeftQueues& queues_;
  std::vector<uint32_t> current_;  // batches
  std::vector<uint32_t> future_;
  std::set<uint32_t> sent_;  // of the current set
  uint32_t iteration_ = 0;
  uint32_t updated_ = 0;
};

TEST(DeftQueues, PutEveryBatchIntoOneUpdate) {
  Rng rng(5);
  for (int round = 0; round < 400; ++round) {
    const DeftSystem system = random_deft_system(rng);
    const auto capacity = static_cast<uint32_t>(1000 + 100 * rng.below(11));
    DeftQueues queues = expect_value(DeftQueues::make(system, capacity));
    Follower follower(queues);
    for (int i = 0; i < 60; ++i) follower.iterate();
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(DeftQueues, GoThroughTheFourCases) {
  DeftQueues queues = expect_value(DeftQueues::make({{{10, 20, 9}, {10, 20, 19}, {10, 20, 130}}, one_link()}));
  ASSERT_EQ(queues.items().size(), 7u);  // 9, 19, and five parts of 26
  EXPECT_FALSE(queues.forward().which.has_value());
  DeftPass pass = queues.backward();
  EXPECT_EQ(pass.which, DeftCase::kBackwardFuture);
  EXPECT_EQ(pass.update_batches, 0u);
  EXPECT_EQ(pass.next_batches, 1u);
  EXPECT_EQ(pass.next_sends, (DeftSends{{2}})) << "26 of the last bucket; 19 more would be late";
  EXPECT_EQ(queues.forward().which, DeftCase::kForward);
  pass = queues.backward();
  EXPECT_EQ(pass.which, DeftCase::kBackwardPart);
  EXPECT_EQ(pass.update_batches, 0u);
  EXPECT_EQ(queues.state().future_batches, 1u);
  queues.forward();
  pass = queues.backward();
  EXPECT_EQ(pass.which, DeftCase::kBackwardRest);
  EXPECT_EQ(pass.update_batches, 1u);
  EXPECT_EQ(pass.next_batches, 2u);
  EXPECT_EQ(queues.pending(), 2u);
}

TEST(DeftQueues, WithOneBucketAreOneIterationLate) {
  DeftQueues queues = expect_value(DeftQueues::make({{{10, 10, 5}}, one_link()}));
  for (int i = 0; i < 10; ++i) {
    const DeftPass forward = queues.forward();
    EXPECT_EQ(forward.sends, (i == 0 ? DeftSends{{}} : DeftSends{{0}}));
    EXPECT_EQ(queues.backward().update_batches, i == 0 ? 0u : 1u);
  }
}

TEST(DeftQueues, PlaceBucketsWithoutMessages) {
  DeftQueues queues = expect_value(DeftQueues::make({{{10, 10, 0}, {10, 10, 0}}, two_links()}));
  Follower follower(queues);
  for (int i = 0; i < 10; ++i) follower.iterate();
  EXPECT_EQ(follower.updated(), 9u);
}

TEST(DeftQueues, RefuseWhatTheyCannotSchedule) {
  EXPECT_FALSE(DeftQueues::make({{}, one_link()}).ok());
  EXPECT_FALSE(DeftQueues::make({{{1, 1, 1}}, one_link()}, 999).ok());
}

}  // namespace
}  // namespace trestle
