// The parts of a split that need no other ranks: what the ranks tell each other, and what is under way.
#include <gtest/gtest.h>

#include "comm/split/split_letters.h"
#include "comm/split/splits_in_progress.h"

namespace trestle {
namespace split_parts_test {
namespace {

TEST(SplitLetters, PartsArriveAsTheyWereSent) {
  const auto part = decode_split_part(encode(SplitPart{3, -7, 12345, false, "no"}), "rank 1");
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part.value().color, 3);
  EXPECT_EQ(part.value().key, -7);
  EXPECT_EQ(part.value().process, 12345u);
  EXPECT_FALSE(part.value().has_place);
  EXPECT_EQ(part.value().refusal, "no");
}

TEST(SplitLetters, AddressesArriveAsTheyWereSent) {
  const auto address = decode_split_address(encode(SplitAddress{Code::kSystemError, "", "no port is free"}), "rank 1");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address.value().code, Code::kSystemError);
  EXPECT_EQ(address.value().address, "");
  EXPECT_EQ(address.value().sentence, "no port is free");
}

TEST(SplitLetters, FailuresArriveAsTheyWereSent) {
  const std::string letter = encode(SplitFailure{9, {Code::kTimeout, "late"}});
  ASSERT_TRUE(is_split_failure(letter));
  const auto failure = decode_split_failure(letter);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->number, 9u);
  EXPECT_EQ(failure->error.code, Code::kTimeout);
  EXPECT_EQ(failure->error.message, "late");
}

TEST(SplitLetters, LongSentencesAreCut) {
  const std::string sentence(5000, 'a');
  EXPECT_TRUE(decode_split_part(encode(SplitPart{0, 0, 0, true, sentence}), "rank 1").ok());
  EXPECT_TRUE(decode_split_address(encode(SplitAddress{Code::kSystemError, "", sentence}), "rank 1").ok());
  EXPECT_TRUE(decode_split_failure(encode(SplitFailure{0, {Code::kTimeout, sentence}})).has_value());
}

TEST(SplitLetters, WhatIsMalformedIsNotTaken) {
  const std::string part = encode(SplitPart{});
  EXPECT_EQ(decode_split_part(part.substr(1), "rank 1").error().code, Code::kRemoteError);
  EXPECT_EQ(decode_split_part(part + "x", "rank 1").error().code, Code::kRemoteError);
  EXPECT_EQ(decode_split_address("", "rank 1").error().code, Code::kRemoteError);
  EXPECT_FALSE(is_split_failure(""));
  EXPECT_FALSE(is_split_failure("?"));
  EXPECT_FALSE(decode_split_failure(encode(SplitFailure{0, {Code::kTimeout, ""}}) + "x").has_value());
  EXPECT_FALSE(decode_split_failure(encode(SplitFailure{0, {Code::kSuccess, ""}})).has_value());
}

TEST(SplitsInProgress, OnesAreUnderWayWhileTheyAreRegistered) {
  SplitsInProgress splits;
  EXPECT_FALSE(splits.oldest().has_value());
  {
    const SplitsInProgress::Registration later(splits, 5);
    const SplitsInProgress::Registration earlier(splits, 4);
    EXPECT_TRUE(splits.contains(5));
    EXPECT_EQ(splits.oldest(), 4u);
  }
  EXPECT_FALSE(splits.contains(5));
  EXPECT_FALSE(splits.oldest().has_value());
}

TEST(SplitsInProgress, TheAwaitedMemberIsNamedByItsRankInTheParent) {
  SplitsInProgress splits;
  SplitsInProgress::Registration one(splits, 0);
  EXPECT_FALSE(splits.awaited_while_joining(0).has_value()) << "the members are not known";
  one.set_members({2, 6});
  EXPECT_EQ(splits.awaited_while_joining(0), -1);
  one.awaited() = 1;
  EXPECT_EQ(splits.awaited_while_joining(0), 6);
  EXPECT_FALSE(splits.awaited_while_joining(1).has_value()) << "another split";
}

TEST(SplitsInProgress, TheFirstFailureStays) {
  SplitsInProgress splits;
  const SplitsInProgress::Registration one(splits, 0);
  EXPECT_TRUE(one.failure().ok());
  splits.set_failure(1, {Code::kTimeout, "of another split"});
  EXPECT_TRUE(one.failure().ok());
  splits.set_failure(0, {Code::kTimeout, "first"});
  splits.set_failure(0, {Code::kAborted, "second"});
  EXPECT_EQ(one.failure().error().message, "first");
  EXPECT_FALSE(splits.contains(1)) << "a failure begins no split";
}

TEST(SplitsInProgress, ExchangesAreCounted) {
  SplitsInProgress splits;
  {
    const SplitsInProgress::Exchange one(splits);
    const SplitsInProgress::Exchange two(splits);
    EXPECT_TRUE(splits.has_exchanges());
  }
  EXPECT_FALSE(splits.has_exchanges());
}

}  // namespace
}  // namespace split_parts_test
}  // namespace trestle
