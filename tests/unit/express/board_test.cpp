// The express board, with threads of one process and processes of one host.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "express/board.h"

namespace trestle {
namespace board_test {
namespace {

constexpr int64_t kGenerousNs = 60'000'000'000;

EndpointConfig config_of(int32_t rank, int32_t ranks, const std::string& job) {
  EndpointConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.job = job;
  config.secret.assign(32, std::byte{7});
  return config;
}

HostKin kin_of(const EndpointConfig& config) {
  return root_kin({config.rank, config.ranks, config.job, config.secret});
}

// Of a rank whose memory goes from process to process.
std::unique_ptr<Board> board_of(const EndpointConfig& config) {
  return Board::create(config, false, kin_of(config)).value();
}

std::byte pattern(int32_t rank, uint64_t sequence, size_t i) {
  return static_cast<std::byte>(static_cast<uint64_t>(rank) * 31 + sequence * 7 + i);
}

// Uses the board as its contract requires. False: a wrong value was read.
bool use(Board& board, int32_t rank, int32_t ranks, uint64_t operations) {
  for (uint64_t s = 0; s < operations; ++s) {
    const size_t bytes = s % 3 == 0 ? kBoardPayloadBytes : s % 3 == 1 ? 8 : kBoardLineBytes;
    for (int32_t peer = 0; peer < ranks; ++peer) {
      while (peer != rank && s >= board.floor(peer) + kBoardSlots) sched_yield();
    }
    std::byte* const mine = board.my_payload(s);
    for (size_t i = 0; i < bytes; ++i) mine[i] = pattern(rank, s, i);
    board.publish(s, s, s * 3);
    for (int32_t peer = 0; peer < ranks; ++peer) {
      while (peer != rank && board.arrived(peer, s, s * 3) != Board::Arrival::kHere) sched_yield();
      const std::byte* const theirs = board.payload(peer, s);
      for (size_t i = 0; i < bytes; ++i) {
        if (theirs[i] != pattern(peer, s, i)) return false;
      }
    }
    board.set_floor(s + 1);
  }
  return true;
}

TEST(Board, WorksBetweenThreadsOfAProcess) {
  constexpr int32_t kRanks = 4;
  std::vector<std::unique_ptr<Board>> boards;
  for (int32_t r = 0; r < kRanks; ++r) boards.push_back(Board::create(config_of(r, kRanks, "job a"), true, {}).value());
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      ASSERT_TRUE(boards[r]->open({}, monotonic_clock().now_ns() + kGenerousNs).ok());
      EXPECT_TRUE(use(*boards[r], r, kRanks, 500));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Board, KeepsJobsApart) {
  const auto a = Board::create(config_of(0, 1, "job a"), true, {}).value();
  const auto b = Board::create(config_of(0, 1, "job b"), true, {}).value();
  a->publish(0, 0, 1);
  EXPECT_EQ(a->arrived(0, 0, 1), Board::Arrival::kHere);
  EXPECT_EQ(b->arrived(0, 0, 1), Board::Arrival::kNotYet);
}

TEST(Board, TellsOfAnotherStamp) {
  const auto board = Board::create(config_of(0, 1, "job c"), true, {}).value();
  constexpr uint64_t kStamp = (uint64_t{1} << 60) - 1;
  for (uint64_t s = 0; s < 100; ++s) {
    const uint64_t lead = s % kBoardSlots;
    if (lead > s) continue;
    board->publish(s, s - lead, kStamp - s);
    EXPECT_EQ(board->arrived(0, s, kStamp - s), Board::Arrival::kHere);
    EXPECT_EQ(board->arrived(0, s, kStamp - s - 1), Board::Arrival::kOther);
    EXPECT_EQ(board->arrived(0, s, (kStamp - s) ^ uint64_t{1} << 59), Board::Arrival::kOther);
    EXPECT_EQ(board->arrived(0, s + kBoardSlots, kStamp - s), Board::Arrival::kNotYet);
    EXPECT_EQ(board->stamp(0, s), kStamp - s);
    EXPECT_LE(board->floor(0), s);
  }
}

TEST(Board, HostMemoryWorksBetweenThreadsToo) {
  constexpr int32_t kRanks = 3;
  std::vector<std::unique_ptr<Board>> boards;
  std::vector<std::string> addresses;
  for (int32_t r = 0; r < kRanks; ++r) {
    boards.push_back(board_of(config_of(r, kRanks, "job c")));
    addresses.push_back(boards.back()->address());
  }
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      const Status status = boards[r]->open(addresses, monotonic_clock().now_ns() + kGenerousNs);
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_TRUE(use(*boards[r], r, kRanks, 200));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Board, WorksBetweenProcesses) {
  constexpr int32_t kRanks = 4;
  auto first = board_of(config_of(0, kRanks, "job d"));
  std::vector<std::string> addresses{first->address()};
  std::vector<pid_t> children;
  for (int32_t r = 1; r < kRanks; ++r) {
    int told[2];
    ASSERT_EQ(pipe2(told, O_CLOEXEC), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto board = board_of(config_of(r, kRanks, "job d"));
      const std::string own = board->address();
      const bool opened = write(told[1], own.data(), own.size()) > 0 &&
                          board->open({addresses[0]}, monotonic_clock().now_ns() + kGenerousNs).ok();
      _exit(opened && use(*board, r, kRanks, 300) ? 0 : 1);
    }
    children.push_back(child);
    std::array<char, 108> address;
    const ssize_t length = read(told[0], address.data(), address.size());
    ASSERT_GT(length, 0);
    addresses.emplace_back(address.data(), static_cast<size_t>(length));
    close(told[0]);
    close(told[1]);
  }
  const Status status = first->open(addresses, monotonic_clock().now_ns() + kGenerousNs);
  EXPECT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(status.ok() && use(*first, 0, kRanks, 300));
  for (const pid_t child : children) {
    int ended = 0;
    ASSERT_EQ(waitpid(child, &ended, 0), child);
    EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  }
}

// The watch ends the wait for a rank that will not come, on both sides, long before the deadline.
TEST(Board, TheWatchEndsTheWait) {
  const auto first = board_of(config_of(0, 3, "job watched"));
  const auto second = board_of(config_of(1, 3, "job watched"));
  const auto third = board_of(config_of(2, 3, "job watched"));
  const std::vector<std::string> addresses{first->address(), second->address(), third->address()};
  const auto watch_after = [](int looks) {
    return ExchangeWatch{-1,
                         [looks]() mutable -> Status {
                           if (looks-- > 0) return {};
                           return Error{Code::kRemoteError, "rank 2 died"};
                         },
                         {}};
  };
  const int64_t deadline_ns = monotonic_clock().now_ns() + kGenerousNs;
  const Status fetched = second->open(addresses, deadline_ns, watch_after(0));  // no rank serves it
  ASSERT_FALSE(fetched.ok());
  EXPECT_EQ(fetched.error().message, "rank 2 died");
  const Status served = first->open(addresses, deadline_ns, watch_after(1));
  ASSERT_FALSE(served.ok());
  EXPECT_EQ(served.error().message, "rank 2 died");
}

TEST(Board, NamesWhoDidNotCome) {
  EndpointConfig config = config_of(0, 3, "job e");
  config.peer_names = {"rank 0 (a)", "rank 1 (b)", "rank 2 (c)"};
  const auto board = board_of(config);
  const auto silent = board_of(config_of(1, 3, "job e"));
  const Status status =
      board->open({board->address(), silent->address(), silent->address()}, monotonic_clock().now_ns() + 1'000'000);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kTimeout);
  EXPECT_NE(status.error().message.find("rank 1 (b)"), std::string::npos) << status.error().message;
}

TEST(Board, TurnsStrangersAway) {
  auto first = board_of(config_of(0, 2, "job f"));
  auto second = board_of(config_of(1, 2, "job f"));
  EndpointConfig wrong = config_of(1, 2, "job f");
  wrong.secret.assign(32, std::byte{8});
  const std::vector<std::string> addresses{first->address(), second->address()};
  std::thread server([&] {
    const Status status = first->open(addresses, monotonic_clock().now_ns() + kGenerousNs);
    EXPECT_TRUE(status.ok()) << status.error().message;
  });
  EXPECT_FALSE(board_of(wrong)->open(addresses, monotonic_clock().now_ns() + 1'000'000).ok());
  EXPECT_TRUE(second->open(addresses, monotonic_clock().now_ns() + kGenerousNs).ok()) << "after a stranger";
  server.join();
}

}  // namespace
}  // namespace board_test
}  // namespace trestle
