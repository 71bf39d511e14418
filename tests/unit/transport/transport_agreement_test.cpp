// Agreement: differences are found whichever side is first, and equal calls are never reported.
#include "transport/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace trestle {
namespace {

const std::vector<std::string> kNames = {"rank 0 (a)", "rank 1 (b)", "rank 2 (c)"};
constexpr uint64_t kSum =
    operation_check(Collective::kAllReduce, false, DataType::kFloat32, ReduceOp::kSum, 1ull << 50);
constexpr uint64_t kMax =
    operation_check(Collective::kAllReduce, false, DataType::kFloat32, ReduceOp::kMax, 1ull << 50);
constexpr uint64_t kOtherSum =
    operation_check(Collective::kAllReduce, false, DataType::kFloat32, ReduceOp::kSum, 1ull << 51);
constexpr uint64_t kCopy = operation_check(Collective::kBroadcast, false, DataType::kInt8, ReduceOp::kSum, 0);

constexpr uint64_t placed(DataPlace place) {
  return operation_check(Collective::kAllReduce, false, DataType::kFloat32, ReduceOp::kSum, 1ull << 50, place);
}

MessageTag tag(uint64_t operation, uint64_t check) {
  return {operation, 3, 2, 1, check};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Agreement, FindsADifferenceInBothOrders) {
  Agreement first(0, kNames);
  EXPECT_TRUE(first.announce(17, kSum));
  EXPECT_TRUE(first.heard(2, tag(17, kSum)));
  EXPECT_FALSE(first.heard(1, tag(17, kCopy)));
  EXPECT_EQ(first.error().code, Code::kInvalidUsage);
  EXPECT_EQ(first.error().message,
            "rank 1 (b) runs operation 17 as broadcast of int8 (hash 000000), rank 0 (a) as allreduce of float, sum "
            "(hash 000400)");

  Agreement second(0, kNames);
  EXPECT_TRUE(second.heard(1, tag(17, kCopy)));
  EXPECT_FALSE(second.announce(17, kSum));
  EXPECT_TRUE(contains(second.error().message, "rank 0 (a) runs operation 17 as allreduce"));
  EXPECT_TRUE(contains(second.error().message, "rank 1 (b) as broadcast"));
}

// Captured calls have higher numbers than all others. They must not keep these from being compared.
TEST(Agreement, ComparesCapturedCallsBesideOthers) {
  Agreement agreement(0, kNames);
  for (uint64_t i = 0; i < 2 * Agreement::kRemembered; ++i) {
    const uint64_t replay = replay_number(captured_number(3), i);
    EXPECT_TRUE(agreement.announce(replay, kMax));
    EXPECT_TRUE(agreement.announce(i, kSum));
    EXPECT_TRUE(agreement.heard(1, tag(i, kSum)));
    EXPECT_TRUE(agreement.heard(1, tag(replay, kMax)));
  }
  const uint64_t replay = replay_number(captured_number(3), 1000);
  EXPECT_TRUE(agreement.announce(replay, kMax));
  EXPECT_FALSE(agreement.heard(1, tag(replay, kSum)));
  EXPECT_TRUE(contains(agreement.error().message, "rank 1 (b) runs replay 1000 of captured operation 3 as allreduce"))
      << agreement.error().message;
  Agreement other(0, kNames);
  EXPECT_TRUE(other.announce(replay_number(captured_number(0), 17), kMax));
  EXPECT_TRUE(other.announce(17, kSum));
  EXPECT_FALSE(other.heard(2, tag(17, kCopy)));
}

TEST(Agreement, FindsTwoPeersThatDiffer) {
  Agreement agreement(0, kNames);
  EXPECT_TRUE(agreement.heard(1, tag(5, kSum)));
  EXPECT_FALSE(agreement.heard(2, tag(5, kMax)));
  EXPECT_TRUE(contains(agreement.error().message, "rank 2 (c) runs operation 5")) << agreement.error().message;
  EXPECT_TRUE(contains(agreement.error().message, "rank 1 (b)"));
}

TEST(Agreement, SaysWhenOnlyTheHashDiffers) {
  Agreement agreement(0, {});
  EXPECT_TRUE(agreement.announce(0, kSum));
  EXPECT_FALSE(agreement.heard(1, tag(0, kOtherSum)));
  EXPECT_EQ(agreement.error().message,
            "rank 1 runs operation 0 as allreduce of float, sum (hash 000800), rank 0 with another count, root or "
            "schedule (hash 000400)");
}

TEST(Agreement, PointToPointTakesNoPart) {
  Agreement agreement(0, {});
  const uint64_t number = uint64_t{1} << 63 | 4;
  EXPECT_TRUE(agreement.announce(number, 0));
  EXPECT_TRUE(agreement.heard(1, tag(number, kSum)));
  EXPECT_TRUE(agreement.heard(1, tag(number, kMax)));
}

// Operations start and messages arrive in any order. Equal checks never cause an error, however far apart they are.
TEST(Agreement, NeverAlarmsForEqualCalls) {
  constexpr uint64_t kOperations = 3000;
  const auto check_of = [](uint64_t n) { return n % 5 == 0 ? kSum : kCopy; };
  Rng rng(7);
  Agreement agreement(0, {});
  std::vector<std::pair<int, uint64_t>> events;
  for (uint64_t n = 0; n < kOperations; ++n) {
    for (int rank = 0; rank < 3; ++rank) events.push_back({rank, n});
  }
  for (size_t i = events.size(); i > 1; --i) std::swap(events[i - 1], events[rng.below(i)]);
  for (const auto& [rank, n] : events) {
    const bool fine = rank == 0 ? agreement.announce(n, check_of(n)) : agreement.heard(rank, tag(n, check_of(n)));
    ASSERT_TRUE(fine) << agreement.error().message;
  }
}

// It remembers as many operations as it promises, in any order.
TEST(Agreement, PlacesThatDifferAreBothSaid) {
  Agreement agreement(0, kNames);
  EXPECT_TRUE(agreement.announce(17, placed(DataPlace::kHost)));
  EXPECT_FALSE(agreement.heard(1, tag(17, placed(DataPlace::kDevice))));
  EXPECT_EQ(agreement.error().message,
            "rank 1 (b) runs operation 17 as allreduce of float, sum, in device memory (hash 000400), rank 0 (a) as "
            "allreduce of float, sum, in host memory (hash 000400)");
}

// Whoever comes first, a rank without data goes with all others, but does not hide that two of them differ.
TEST(Agreement, ARankWithoutDataGoesWithAnyPlace) {
  constexpr uint64_t kPlaced[] = {placed(DataPlace::kHost), placed(DataPlace::kDevice)};
  constexpr uint64_t kNowhere = placed(DataPlace::kNone);
  for (const int first : {0, 1}) {
    for (const int none_at : {0, 1, 2}) {
      Agreement agreement(0, kNames);
      std::vector<uint64_t> checks = {kPlaced[first], kPlaced[first]};
      checks.insert(checks.begin() + none_at, kNowhere);
      for (int r = 0; r < 3; ++r) EXPECT_TRUE(agreement.heard(r, tag(17, checks[r])));
      EXPECT_FALSE(agreement.heard(1, tag(17, kPlaced[1 - first])));
      EXPECT_TRUE(contains(agreement.error().message, "in device memory")) << agreement.error().message;
      EXPECT_TRUE(contains(agreement.error().message, "in host memory")) << agreement.error().message;
    }
  }
  Agreement other(0, kNames);
  EXPECT_TRUE(other.announce(17, kNowhere));
  EXPECT_FALSE(other.heard(1, tag(17, kOtherSum))) << "only the place may differ";
}

TEST(Agreement, RemembersThatManyOperations) {
  for (const uint64_t odd : {uint64_t{0}, Agreement::kRemembered / 2, Agreement::kRemembered - 1}) {
    Agreement agreement(0, {});
    for (uint64_t n = Agreement::kRemembered; n-- > 0;) ASSERT_TRUE(agreement.announce(1000 + n, kSum));
    for (uint64_t n = 0; n < Agreement::kRemembered; ++n) {
      EXPECT_EQ(agreement.heard(1, tag(1000 + n, n == odd ? kMax : kSum)), n != odd);
    }
  }
}

TEST(Agreement, ChecksTellCallsApart) {
  std::vector<uint64_t> all;
  for (size_t c = 0; c < kCollectives; ++c) {
    for (size_t t = 0; t < kDataTypes; ++t) {
      for (size_t o = 0; o < kAllReduceOps; ++o) {
        for (const bool half : {false, true}) {
          all.push_back(operation_check(static_cast<Collective>(c), half, static_cast<DataType>(t),
                                        static_cast<ReduceOp>(o), ~uint64_t{0}));
        }
      }
    }
  }
  EXPECT_EQ(*std::max_element(all.begin(), all.end()) >> kCheckBits, 0u);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

// Every part has its own bits up to its largest number, including numbers without a meaning yet.
TEST(Agreement, ChecksHaveRoomForMore) {
  const auto check = [](size_t collective, bool half, size_t type, size_t op, uint64_t hash) {
    return operation_check(static_cast<Collective>(collective), half, static_cast<DataType>(type),
                           static_cast<ReduceOp>(op), hash);
  };
  EXPECT_EQ(check(255, false, 0, 0, 0), 0xffu);
  EXPECT_EQ(check(0, true, 0, 0, 0), 0x100u);
  EXPECT_EQ(check(0, false, 31, 0, 0), 0x3e00u);
  EXPECT_EQ(kSum ^ placed(static_cast<DataPlace>(3)), 0xc000u);
  EXPECT_EQ(check(0, false, 0, 255, 0), 0xff0000u);
  EXPECT_EQ(check(0, false, 0, 0, ~uint64_t{0}), 0xffffff000000u);
}

// A peer may send any number. The sentence handles all of them.
TEST(Agreement, NamesOfUnknownNumbersAreInvalid) {
  Agreement agreement(0, {});
  EXPECT_TRUE(agreement.announce(3, kSum));
  EXPECT_FALSE(agreement.heard(1, tag(3, 0xffffff0000c8)));
  EXPECT_TRUE(contains(agreement.error().message, "rank 1 runs operation 3 as invalid (hash ffffff)"))
      << agreement.error().message;
  Agreement other(0, {});
  EXPECT_TRUE(other.announce(3, kSum));
  EXPECT_FALSE(other.heard(1, tag(3, uint64_t{127} << 9 | uint64_t{255} << 16)));
  EXPECT_TRUE(contains(other.error().message, "as allreduce of invalid, invalid, in an unknown place (hash 000000)"))
      << other.error().message;
}

}  // namespace
}  // namespace trestle
