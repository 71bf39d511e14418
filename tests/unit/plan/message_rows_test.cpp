#include "plan/message_rows.h"

#include <gtest/gtest.h>

#include "plan/builder.h"

namespace trestle {
namespace {

using Rows = std::vector<std::vector<uint32_t>>;

PlanRequest request(PhaseKind kind, int32_t group_size) {
  return {kind, group_size, 0, 0, false};
}

TEST(MessageRows, AreOfOneDirectionAndOnePeer) {
  PlanBuilder builder(request(PhaseKind::kAllReduce, 3), 3);
  builder.send(1, input(0), 0);                       // 0
  builder.reduce(output(1), {from(2), input(1)}, 1);  // 1
  builder.send(1, output(1), 1);                      // 2
  builder.recv(2, output(0), 0);                      // 3
  builder.copy(output(2), input(2), 2);               // 4
  builder.send(2, input(2), 2);                       // 5
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(message_rows(plan), (Rows{{0, 2}, {1, 3}, {5}}));
  EXPECT_EQ(previous_in_rows(plan), (std::vector<uint32_t>{kNoStep, kNoStep, 0, 1, kNoStep, kNoStep}));
}

TEST(MessageRows, AReduceOfSeveralMessagesIsARowAlone) {
  PlanBuilder builder(request(PhaseKind::kAllReduce, 3), 1);
  builder.recv(1, scratch(0), 0);                               // 0
  builder.reduce(scratch(1), {from(1), from(2), input(0)}, 0);  // 1
  builder.recv(1, output(0), 0);                                // 2
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(message_rows(plan), (Rows{{0, 2}, {1}}));
  EXPECT_EQ(messages_of(plan, plan.steps[1]), 2u);
}

TEST(MessageRows, MessagesInTurnAreOneRow) {
  PlanBuilder builder(request(PhaseKind::kAllToAll, 3), 3);
  builder.send(1, input(1), 1);   // 0
  builder.recv(2, output(2), 0);  // 1
  builder.send(2, input(2), 2);   // 2
  builder.in_turn_after(0);
  builder.recv(1, output(1), 0);  // 3
  const Plan plan = std::move(builder).finish();
  EXPECT_EQ(message_rows(plan), (Rows{{0, 2}, {1}, {3}}));
}

}  // namespace
}  // namespace trestle
