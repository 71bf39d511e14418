// The trace of steps: a ring of the last events, whole ones only, and their text.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gradient/executor/trace/step_trace.h"

namespace trestle {
namespace {

TraceEvent numbered(uint32_t number) {
  return {TraceKind::kTravel, number, number + 1, {number + 2, number + 3}, number + 4, number + 5, number + 6};
}

TEST(StepTrace, KeepsTheLastEvents) {
  StepTrace trace;
  trace.note(numbered(1));
  EXPECT_FALSE(trace.on());
  EXPECT_TRUE(trace.events().empty());
  ASSERT_TRUE(trace.begin(3).ok());
  EXPECT_TRUE(trace.on());
  for (uint32_t i = 0; i < 2; ++i) trace.note(numbered(i));
  EXPECT_EQ(trace.events(), (std::vector<TraceEvent>{numbered(0), numbered(1)}));
  for (uint32_t i = 2; i < 10; ++i) trace.note(numbered(i));
  EXPECT_EQ(trace.events(), (std::vector<TraceEvent>{numbered(7), numbered(8), numbered(9)}));
  ASSERT_TRUE(trace.begin(2).ok());
  EXPECT_TRUE(trace.events().empty());
  ASSERT_TRUE(trace.begin(0).ok());
  trace.note(numbered(1));
  EXPECT_FALSE(trace.on());
}

// Readers see no event of which a part is of another one. In a short ring writers overtake each other by a whole round.
class StepTraceRing : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Events, StepTraceRing, testing::Values(1, 2, 3, 64));

TEST_P(StepTraceRing, HasWholeEventsOnly) {
  constexpr uint32_t kEvents = 100'000;
  StepTrace trace;
  ASSERT_TRUE(trace.begin(GetParam()).ok());
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&] {
      for (uint32_t number = 0; number < kEvents; ++number) trace.note(numbered(number));
    });
  }
  std::thread reader([&] {
    while (!stop.load()) {
      for (const TraceEvent& event : trace.events()) ASSERT_EQ(event, numbered(event.number));
    }
  });
  for (std::thread& writer : writers) writer.join();
  stop.store(true);
  reader.join();
  EXPECT_LE(trace.events().size(), GetParam());
}

TEST(StepTrace, TextHasEachEvent) {
  const std::vector<TensorEntry> tensors = {{"a", 1, DataType::kFloat32, nullptr, nullptr},
                                            {"b\"", 1, DataType::kFloat32, nullptr, nullptr}};
  const std::string text = trace_json({{TraceKind::kReady, 1, 0, {}, 3, 1500, 1500},
                                       {TraceKind::kStepEnd, 0, 0, {}, 3, 2000, 2000},
                                       {TraceKind::kTravel, 7, 1, {0, 1}, 3, 2001, 1'002'003},
                                       {TraceKind::kWait, 0, 0, {}, 3, 5, 6}},
                                      tensors, 4);
  for (const char* part :
       {"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":4,\"tid\":0,"
        "\"args\":{\"name\":\"rank 4\"}},",
        "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":4,\"tid\":3,\"args\":{\"name\":\"link 1\"}}",
        "{\"name\":\"ready b\\\"\",\"ph\":\"i\",\"pid\":4,\"tid\":0,\"cat\":\"ready\",\"ts\":1.500,\"s\":\"t\","
        "\"args\":{\"step\":3,\"tensor\":1}}",
        "{\"name\":\"step end\",\"ph\":\"i\",\"pid\":4,\"tid\":0,\"cat\":\"step end\",\"ts\":2.000,\"s\":\"t\","
        "\"args\":{\"step\":3}}",
        "{\"name\":\"travel a to b\\\"\",\"ph\":\"b\",\"pid\":4,\"tid\":3,\"cat\":\"travel\",\"ts\":2.001,\"id\":1,"
        "\"args\":{\"step\":3,\"message\":7,\"link\":1,\"first\":0,\"last\":1}}",
        "\"ph\":\"e\",\"pid\":4,\"tid\":3,\"cat\":\"travel\",\"ts\":1002.003,\"id\":1,",
        "{\"name\":\"wait a\",\"ph\":\"b\",\"pid\":4,\"tid\":1,\"cat\":\"wait\",\"ts\":0.005,\"id\":2,"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_TRUE(text.ends_with("}}]}"));
}

}  // namespace
}  // namespace trestle
