// Calls compared between ranks: the differing field is found whichever rank is first, and the sentence names it.
#include "comm/calls/call_check.h"

#include <gtest/gtest.h>

namespace trestle {
namespace call_check_test {
namespace {

std::vector<std::string> names() {
  return {"rank 0 (a)", "rank 1 (b)", "rank 2 (c)"};
}

PrepareRequest all_reduce(uint64_t count) {
  PrepareRequest request;
  request.count = count;
  return request;
}

PrepareRequest message(uint64_t count, DataType type) {
  PrepareRequest request;
  request.collective = Collective::kSendRecv;
  request.count = count;
  request.type = type;
  return request;
}

std::string letter_of(CallCheck& check, const OperationKey& key, const PrepareRequest& request) {
  const auto letter = check.made(key, summary_of(request));
  EXPECT_TRUE(letter.ok());
  EXPECT_TRUE(letter.value().has_value());
  return letter.value()->text;
}

bool has(const Error& error, const std::string& part) {
  return error.message.find(part) != std::string::npos;
}

TEST(CallCheck, EqualCallsAreEqualWhoeverIsFirst) {
  for (const bool own_first : {true, false}) {
    CallCheck zero(0, names()), one(1, names());
    const std::string letter = letter_of(zero, {7}, all_reduce(10));
    if (own_first) {
      EXPECT_TRUE(one.made({7}, summary_of(all_reduce(10))).ok());
    }
    EXPECT_TRUE(one.heard(0, letter).ok());
    if (!own_first) {
      EXPECT_TRUE(one.made({7}, summary_of(all_reduce(10))).ok());
    }
    EXPECT_TRUE(one.heard(0, letter).ok()) << "letters come twice";
  }
}

TEST(CallCheck, DifferentPlacesAreBothSaid) {
  for (const bool own_first : {true, false}) {
    CallCheck zero(0, names()), one(1, names());
    PrepareRequest on_device = all_reduce(10);
    on_device.place = MemoryPlace::kDevice;
    const PrepareRequest first = own_first ? on_device : all_reduce(10);
    const PrepareRequest second = own_first ? all_reduce(10) : on_device;
    const std::string letter = letter_of(zero, {7}, first);
    ASSERT_TRUE(one.made({7}, summary_of(second)).ok());
    const Status heard = one.heard(0, letter);
    ASSERT_FALSE(heard.ok());
    EXPECT_TRUE(has(heard.error(), "rank 0 (a) calls operation 7 as")) << heard.error().message;
    EXPECT_TRUE(has(heard.error(), "in device memory")) << heard.error().message;
    EXPECT_TRUE(has(heard.error(), "in host memory")) << heard.error().message;
    EXPECT_NE(check_of(first, 0), check_of(second, 0)) << "the messages of the operation differ too";
  }
}

TEST(CallCheck, ARankWithoutDataGoesWithAnyPlace) {
  for (const MemoryPlace place : {MemoryPlace::kHost, MemoryPlace::kDevice}) {
    for (const bool own_first : {true, false}) {
      CallCheck zero(0, names()), one(1, names());
      PrepareRequest with = all_reduce(10);
      with.place = place;
      PrepareRequest without = all_reduce(10);
      without.has_data = false;
      const std::string letter = letter_of(zero, {7}, own_first ? without : with);
      ASSERT_TRUE(one.made({7}, summary_of(own_first ? with : without)).ok());
      EXPECT_TRUE(one.heard(0, letter).ok());
      without.count = 11;
      const std::string other = letter_of(zero, {8}, own_first ? without : with);
      ASSERT_TRUE(one.made({8}, summary_of(own_first ? with : without)).ok());
      const Status heard = one.heard(0, other);
      ASSERT_FALSE(heard.ok()) << "only the place may differ";
      EXPECT_EQ(has(heard.error(), "without data"), place == MemoryPlace::kDevice) << heard.error().message;
    }
  }
}

TEST(CallCheck, DifferentCallsAreBothSaid) {
  for (const bool own_first : {true, false}) {
    CallCheck zero(0, names()), one(1, names());
    const std::string letter = letter_of(zero, {7}, all_reduce(10));
    PrepareRequest reduce = all_reduce(11);
    reduce.collective = Collective::kReduce;
    reduce.op = ReduceOp::kMax;
    reduce.root = 2;
    Status status;
    if (own_first) {
      EXPECT_TRUE(one.made({7}, summary_of(reduce)).ok());
    }
    status = one.heard(0, letter);
    if (!own_first) {
      EXPECT_TRUE(status.ok());
      const auto made = one.made({7}, summary_of(reduce));
      ASSERT_FALSE(made.ok());
      status = made.error();
    }
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kInvalidUsage);
    EXPECT_TRUE(has(status.error(),
                    "rank 0 (a) calls operation 7 as allreduce of 10 float (sum), rank 1 (b) as reduce "
                    "of 11 float (max), root 2"))
        << status.error().message;
  }
}

TEST(CallCheck, LettersGoToTheNextRankOrTheReceiver) {
  CallCheck two(2, names());
  EXPECT_EQ(two.made({0}, summary_of(all_reduce(1))).value()->to, 0);
  EXPECT_EQ(two.made({kPointToPoint, 1, true}, summary_of(message(5, DataType::kInt8))).value()->to, 1);
  EXPECT_FALSE(two.made({kPointToPoint, 1, false}, summary_of(message(5, DataType::kInt8))).value().has_value());
}

TEST(CallCheck, MessagesOfTheSameBytesButOtherTypesDiffer) {
  CallCheck zero(0, names()), one(1, names());
  const std::string letter = letter_of(zero, {kPointToPoint | 4, 1, true}, message(8, DataType::kFloat32));
  EXPECT_TRUE(one.made({kPointToPoint | 4, 2, false}, summary_of(message(9, DataType::kFloat32))).ok())
      << "of another rank";
  EXPECT_TRUE(one.made({kPointToPoint | 4, 0, false}, summary_of(message(8, DataType::kInt32))).ok());
  const Status status = one.heard(0, letter);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(has(status.error(), "rank 0 (a) sends message 4 as")) << status.error().message;
  EXPECT_TRUE(has(status.error(), "rank 1 (b) receives it as")) << status.error().message;
}

TEST(CallCheck, MessagesToItselfAreComparedToo) {
  for (const bool sends_first : {true, false}) {
    CallCheck one(1, names());
    Status status;
    for (const bool sending : {sends_first, !sends_first}) {
      const auto made = one.made({kPointToPoint, 1, sending},
                                 summary_of(message(8, sending ? DataType::kInt32 : DataType::kFloat32)));
      if (made.ok()) {
        EXPECT_FALSE(made.value().has_value()) << "there is nobody to tell";
      } else {
        status = made.error();
      }
    }
    ASSERT_FALSE(status.ok());
    EXPECT_TRUE(has(status.error(), "int32")) << status.error().message;
    EXPECT_TRUE(has(status.error(), "rank 1 (b) receives it as")) << status.error().message;
  }
}

TEST(CallCheck, LongConfigurationsFitIntoALetter) {
  CallOptions options;
  options.algorithm = std::string(100'000, 'x');
  options.seal();
  PrepareRequest request = all_reduce(1);
  request.options.options = std::make_shared<const CallOptions>(options);
  CallCheck zero(0, names()), one(1, names());
  const std::string letter = letter_of(zero, {0}, request);
  EXPECT_LE(letter.size(), 4096u);
  EXPECT_TRUE(one.made({0}, summary_of(all_reduce(1))).ok());
  EXPECT_FALSE(one.heard(0, letter).ok());
}

TEST(CallCheck, KnownCountsAreComparedAndPairwiseOnesAreNot) {
  const auto blocks = [](std::vector<uint64_t> counts) {
    BlockList list{counts, std::vector<uint64_t>(counts.size())};
    return SharedBlocks(UnevenBlocks{list, list});
  };
  PrepareRequest gather = all_reduce(6);
  gather.collective = Collective::kAllGatherV;
  gather.blocks = blocks({1, 2, 3});
  CallCheck zero(0, names()), one(1, names());
  const std::string letter = letter_of(zero, {0}, gather);
  gather.blocks = blocks({1, 3, 2});
  EXPECT_TRUE(one.made({0}, summary_of(gather)).ok());
  const Status status = one.heard(0, letter);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(has(status.error(), "counts 1 2 3")) << status.error().message;
  EXPECT_TRUE(has(status.error(), "counts 1 3 2")) << status.error().message;

  PrepareRequest exchange = gather;
  exchange.collective = Collective::kAllToAllV;
  const std::string other = letter_of(zero, {1}, exchange);
  exchange.count = 77;
  exchange.blocks = blocks({9, 9, 9});
  EXPECT_TRUE(one.made({1}, summary_of(exchange)).ok());
  EXPECT_TRUE(one.heard(0, other).ok());
}

TEST(CallCheck, ForgetsWhatIsOldAndIgnoresNonsense) {
  CallCheck zero(0, names()), one(1, names());
  const std::string letter = letter_of(zero, {0}, all_reduce(1));
  for (uint64_t n = 0; n <= CallCheck::kRemembered; ++n) EXPECT_TRUE(one.made({n}, summary_of(all_reduce(2))).ok());
  EXPECT_TRUE(one.heard(0, letter).ok()) << "operation 0 is no longer remembered";
  EXPECT_TRUE(one.made({1u << 20}, summary_of(all_reduce(2))).ok());
  const std::string differs = letter_of(zero, {1u << 20}, all_reduce(1));
  EXPECT_TRUE(one.heard(2, differs).ok()) << "not from the rank before";
  for (size_t cut = 0; cut < differs.size(); ++cut) EXPECT_TRUE(one.heard(0, differs.substr(0, cut)).ok()) << cut;
  EXPECT_FALSE(one.heard(0, differs).ok());
}

}  // namespace
}  // namespace call_check_test
}  // namespace trestle
