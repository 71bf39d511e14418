// Runs: the walk over lists of pieces with different boundaries.
#include "engine/work/runs.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace trestle {
namespace runs_test {
namespace {

using Lengths = std::vector<uint64_t>;

// A destination and two sources in memory of their own, cut as the lists say.
class WalkOverRuns : public testing::Test {
 protected:
  void cut(const Lengths& to, const Lengths& first, const Lengths& second) {
    pieces_of(to, memory_[0], write_);
    pieces_of(first, memory_[1], read_[0]);
    pieces_of(second, memory_[2], read_[1]);
    sources_ = {read_[0], read_[1]};
    work_.kind = WorkKind::kCopy;
    work_.destination = write_;
    work_.sources = sources_;
  }
  Lengths walk(bool join) {
    Lengths lengths;
    uint64_t at = 0;
    runs_.begin(work_);
    while (runs_.next(join)) {
      EXPECT_EQ(runs_.destination(), memory_[0].data() + at);
      EXPECT_EQ(runs_.sources()[0], memory_[1].data() + at);
      EXPECT_EQ(runs_.sources()[1], memory_[2].data() + at);
      lengths.push_back(runs_.bytes());
      at += runs_.bytes();
    }
    return lengths;
  }

  using Memory = std::array<std::byte, 64>;
  std::array<Memory, 3> memory_;
  std::vector<Piece> write_;
  std::array<std::vector<ConstPiece>, 2> read_;
  std::array<std::span<const ConstPiece>, 2> sources_;
  Work work_;
  Runs runs_{2};

 private:
  template <class P>
  static void pieces_of(const Lengths& lengths, Memory& memory, std::vector<P>& pieces) {
    pieces.clear();
    std::byte* at = memory.data();
    for (const uint64_t length : lengths) {
      pieces.push_back({at, length});
      at += length;
    }
  }
};

TEST_F(WalkOverRuns, CutsAtTheBoundariesOfAllLists) {
  cut({10, 20}, {5, 25}, {30});
  EXPECT_EQ(walk(false), (Lengths{5, 5, 20}));
  cut({30}, {30}, {30});
  EXPECT_EQ(walk(false), (Lengths{30}));
}

TEST_F(WalkOverRuns, JoinsWhatContinues) {
  cut({10, 20}, {5, 25}, {1, 29});
  EXPECT_EQ(walk(true), (Lengths{30}));
}

TEST_F(WalkOverRuns, JoinsNothingAcrossAGap) {
  cut({10, 20}, {5, 25}, {1, 29});
  write_[1].data += 2;
  runs_.begin(work_);
  ASSERT_TRUE(runs_.next(true));
  EXPECT_EQ(runs_.bytes(), 10U);
  ASSERT_TRUE(runs_.next(true));
  EXPECT_EQ(runs_.bytes(), 20U);
  EXPECT_EQ(runs_.destination(), memory_[0].data() + 12);
  EXPECT_FALSE(runs_.next(true));
}

TEST_F(WalkOverRuns, PassesEmptyPieces) {
  cut({0, 10, 0, 0, 20, 0}, {0, 30}, {30, 0});
  EXPECT_EQ(walk(false), (Lengths{10, 20}));
  cut({0}, {}, {});
  EXPECT_EQ(walk(false), Lengths{});
}

TEST_F(WalkOverRuns, BeginsAgain) {
  cut({10, 20}, {30}, {30});
  runs_.begin(work_);
  ASSERT_TRUE(runs_.next(false));
  EXPECT_EQ(walk(false), (Lengths{10, 20}));
}

}  // namespace
}  // namespace runs_test
}  // namespace trestle
