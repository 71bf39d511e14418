// The express path: right results in any order of publishing, looking and finishing, and no slot is written while a
// rank may still read it.
#include "express/express.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/rng.h"

namespace trestle {
namespace {

constexpr int64_t kGenerousNs = 60'000'000'000;
constexpr uint64_t kMostBytes = 8192;
constexpr Collective kServed[] = {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                  Collective::kBroadcast, Collective::kReduce,        Collective::kAllToAll,
                                  Collective::kBarrier,   Collective::kGather,        Collective::kScatter};

// The ranks of one communicator in this process.
std::vector<std::unique_ptr<Express>> make_ranks(int32_t ranks, const std::string& job) {
  std::vector<std::unique_ptr<Board>> boards;
  for (int32_t r = 0; r < ranks; ++r) {
    EndpointConfig config;
    config.rank = r;
    config.ranks = ranks;
    config.job = job;
    auto board = Board::create(config, true, {});
    EXPECT_TRUE(board.ok()) << board.error().message;
    boards.push_back(std::move(board).value());
  }
  std::vector<std::thread> threads;
  for (auto& board : boards) {
    threads.emplace_back([&] { EXPECT_TRUE(board->open({}, monotonic_clock().now_ns() + kGenerousNs).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::unique_ptr<Express>> all;
  for (int32_t r = 0; r < ranks; ++r) {
    all.push_back(std::make_unique<Express>(std::move(boards[r]), r, ranks, kMostBytes));
  }
  return all;
}

int32_t value_of(int32_t rank, uint64_t sequence, size_t i) {
  return static_cast<int32_t>(sequence * 1000 + static_cast<uint64_t>(rank) * 100 + i % 97);
}

// One collective of int32 on all ranks, its buffers and the expected result.
struct Job {
  Collective collective = Collective::kAllReduce;
  size_t count = 0;
  int32_t root = 0;
  uint64_t sequence = 0;
  std::vector<std::vector<int32_t>> send, recv;
  std::vector<ExpressCall> calls;
  std::vector<bool> done;

  Job(Collective kind, size_t elements, int32_t root_rank, int32_t ranks, uint64_t number)
      : collective(kind), count(elements), root(root_rank), sequence(number), calls(ranks), done(ranks) {
    for (int32_t r = 0; r < ranks; ++r) {
      send.emplace_back(count * ranks);
      for (size_t i = 0; i < send[r].size(); ++i) send[r][i] = value_of(r, sequence, i);
      recv.emplace_back(count * ranks, -1);
      ExpressCall& call = calls[r];
      call.collective = collective;
      call.reduce = find_reduce(DataType::kInt32, ReduceOp::kSum);
      call.spec = {DataType::kInt32, ReduceOp::kSum, 0, false};
      call.elements = count;
      call.bytes = count * 4;
      call.root = root;
      call.sequence = sequence;
    }
    for (int32_t r = 0; r < ranks; ++r) {
      calls[r].send = reinterpret_cast<const std::byte*>(send[r].data());
      calls[r].recv = reinterpret_cast<std::byte*>(recv[r].data());
    }
  }

  int32_t sum(size_t i) const {
    int32_t result = 0;
    for (const auto& input : send) result += input[i];
    return result;
  }
  // The expected value of element i in rank r's receive buffer; -1: not written.
  int32_t expected(int32_t r, size_t i) const {
    const size_t block = count == 0 ? 0 : i / count;
    switch (collective) {
      case Collective::kAllReduce:
        return i < count ? sum(i) : -1;
      case Collective::kReduce:
        return r == root && i < count ? sum(i) : -1;
      case Collective::kReduceScatter:
        return i < count ? sum(r * count + i) : -1;
      case Collective::kBroadcast:
        return i < count ? send[root][i] : -1;
      case Collective::kGather:
        return r == root ? send[block][i % count] : -1;
      case Collective::kScatter:
        return i < count ? send[root][r * count + i] : -1;
      case Collective::kAllGather:
        return send[block][i % count];
      case Collective::kAllToAll:
        return send[block][r * count + i % count];
      default:
        return -1;
    }
  }
  void check() const {
    for (int32_t r = 0; r < static_cast<int32_t>(recv.size()); ++r) {
      for (size_t i = 0; i < recv[r].size(); ++i) {
        ASSERT_EQ(recv[r][i], expected(r, i))
            << to_string(collective) << " " << sequence << ", rank " << r << ", " << i;
      }
    }
  }
};

Job random_job(const Express& express, int32_t ranks, uint64_t sequence, Rng& rng) {
  const Collective collective = kServed[rng.below(std::size(kServed))];
  const size_t count = rng.below(3) == 0 ? rng.below(3) : rng.below(200);
  const bool served = express.serves(collective, count * 4);
  return Job(collective, served ? count : 1, static_cast<int32_t>(rng.below(ranks)), ranks, sequence);
}

class ExpressRanks : public testing::TestWithParam<int32_t> {};

// Operations of several streams. Each rank polls its started operations in any order, and starts the next one at any
// time.
TEST_P(ExpressRanks, AgreeInWhateverOrderTheyArePolled) {
  const int32_t ranks = GetParam();
  constexpr uint64_t kOperations = 300;
  constexpr uint64_t kOpen = 12;  // more than there are slots, so that some must wait
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rng rng(seed);
    auto express = make_ranks(ranks, "polled " + std::to_string(ranks) + " " + std::to_string(seed));
    std::vector<Job> jobs;
    for (uint64_t s = 0; s < kOperations; ++s) jobs.push_back(random_job(*express[0], ranks, s, rng));
    std::vector<uint64_t> first(ranks);  // each rank's oldest incomplete operation
    uint64_t left = kOperations * ranks;
    uint64_t idle = 0;
    while (left != 0) {
      const auto r = static_cast<int32_t>(rng.below(ranks));
      const uint64_t s = std::min(first[r] + rng.below(kOpen), kOperations - 1);
      bool finished = !jobs[s].done[r] && express[r]->poll(jobs[s].calls[r]);
      idle = finished ? 0 : idle + 1;
      ASSERT_LT(idle, 1'000'000u) << "nothing completes any more, seed " << seed;
      if (!finished) continue;
      jobs[s].done[r] = true;
      --left;
      // The caller owns its buffer again, so no rank may still read it.
      std::fill(jobs[s].send[r].begin(), jobs[s].send[r].end(), -7);
      while (first[r] < kOperations && jobs[first[r]].done[r]) ++first[r];
    }
    for (Job& job : jobs) {
      for (int32_t r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < job.send[r].size(); ++i) job.send[r][i] = value_of(r, job.sequence, i);
      }
      job.check();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
  }
}

TEST_P(ExpressRanks, NobodyFinishesBeforeAllHaveCome) {
  const int32_t ranks = GetParam();
  if (ranks == 1) return;
  auto express = make_ranks(ranks, "come " + std::to_string(ranks));
  Job job(Collective::kAllReduce, 4, 0, ranks, 0);
  for (int round = 0; round < 3; ++round) {
    for (int32_t r = 0; r + 1 < ranks; ++r) EXPECT_FALSE(express[r]->poll(job.calls[r]));
  }
  EXPECT_TRUE(express[ranks - 1]->poll(job.calls[ranks - 1]));
  for (int32_t r = 0; r + 1 < ranks; ++r) EXPECT_TRUE(express[r]->poll(job.calls[r]));
  job.check();
}

// A rank that is ahead stops when all slots are in use, until the slowest rank has read.
TEST_P(ExpressRanks, WaitForTheSlowestOneBeforeASlotIsUsedAgain) {
  const int32_t ranks = GetParam();
  if (ranks == 1) return;
  auto express = make_ranks(ranks, "slots " + std::to_string(ranks));
  std::vector<Job> jobs;
  for (uint64_t s = 0; s <= kBoardSlots; ++s) jobs.emplace_back(Collective::kBroadcast, 8, 0, ranks, s);
  for (Job& job : jobs) EXPECT_FALSE(express[0]->poll(job.calls[0]));
  EXPECT_TRUE(jobs[kBoardSlots - 1].calls[0].published);
  EXPECT_FALSE(jobs[kBoardSlots].calls[0].published) << "a slot was written that nobody has read yet";
  for (uint64_t s = 0; s < kBoardSlots; ++s) {
    for (int32_t r = 1; r < ranks; ++r) express[r]->poll(jobs[s].calls[r]);
    for (int32_t r = 0; r < ranks; ++r) {
      EXPECT_TRUE(jobs[s].calls[r].arrived == ranks || express[r]->poll(jobs[s].calls[r])) << "operation " << s;
    }
    jobs[s].check();
  }
  EXPECT_FALSE(express[0]->poll(jobs[kBoardSlots].calls[0]));
  EXPECT_TRUE(jobs[kBoardSlots].calls[0].published);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExpressRanks, testing::Values(1, 2, 3, 5, 8));

TEST(ExpressServes, WhatTheRowsSay) {
  const auto two = make_ranks(2, "serves rows");
  for (const CollectiveRow& row : kCollectiveRows) {
    const bool tested_here = std::ranges::find(kServed, row.collective) != std::end(kServed);
    EXPECT_EQ(two[0]->serves(row.collective, 8), tested_here) << row.name;
  }
}

// The report has the whole check, and as much of the number as its last bits show.
TEST(ExpressDissent, IsToldWithWhatTheOtherRuns) {
  constexpr uint64_t kOurs = (uint64_t{1} << kCheckBits) - 1;
  constexpr uint64_t kTheirs = uint64_t{1} << (kCheckBits - 1);
  uint64_t jobs = 0;
  for (const uint64_t number : {uint64_t{0}, uint64_t{4095}, uint64_t{1} << 40}) {
    for (const int64_t ahead : {-2000, -1, 0, 1, 2000}) {
      if (static_cast<int64_t>(number) + ahead < 0) continue;
      const auto two = make_ranks(2, "dissent " + std::to_string(jobs++));
      Job job(Collective::kAllReduce, 2, 0, 2, 0);
      job.calls[0].number = number;
      job.calls[0].check = kOurs;
      job.calls[1].number = number + static_cast<uint64_t>(ahead);
      job.calls[1].check = kTheirs;
      two[1]->poll(job.calls[1]);
      EXPECT_FALSE(two[0]->poll(job.calls[0]));
      ASSERT_EQ(job.calls[0].dissenter, 1);
      EXPECT_EQ(two[0]->run_by_dissenter(job.calls[0]).number, job.calls[1].number);
      EXPECT_EQ(two[0]->run_by_dissenter(job.calls[0]).check, kTheirs);
    }
  }
}

TEST(ExpressServes, WhatFitsASlotAndIsCheaperThanMessages) {
  const auto two = make_ranks(2, "serves 2");
  EXPECT_TRUE(two[0]->serves(Collective::kAllReduce, 0));
  EXPECT_TRUE(two[0]->serves(Collective::kAllReduce, kMostBytes));
  EXPECT_FALSE(two[0]->serves(Collective::kAllReduce, kMostBytes + 1));
  EXPECT_TRUE(two[0]->serves(Collective::kReduceScatter, kMostBytes / 2));
  EXPECT_FALSE(two[0]->serves(Collective::kReduceScatter, kMostBytes / 2 + 1)) << "all blocks have to fit";
  EXPECT_FALSE(two[0]->serves(Collective::kAllToAll, UINT64_MAX)) << "a product that overflows";
  EXPECT_FALSE(two[0]->serves(Collective::kSendRecv, 8));
  const auto many = make_ranks(16, "serves 16");
  EXPECT_TRUE(many[0]->serves(Collective::kAllReduce, 4096));
  EXPECT_FALSE(many[0]->serves(Collective::kAllReduce, kMostBytes)) << "every rank would read 128 KiB";
}

}  // namespace
}  // namespace trestle
