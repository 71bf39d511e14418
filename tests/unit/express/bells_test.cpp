// Doorbells lose no wake-up, whether writer or sleeper is first, with and without the system's heavy fences.
#include "express/doorbells.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

constexpr int kWatchdogMs = 60'000;
constexpr int32_t kRanks = 3;

// The memory that ranks share: one number each, in its own cache line, and the doorbells.
struct Memory {
  Doorbells::Shared shared;
  Doorbells::Place places[kRanks];
  struct alignas(128) Number {
    std::atomic<uint64_t> value;
  } numbers[kRanks];
  std::atomic<int> ready;

  static Memory* make() {
    void* const memory = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) Memory();
  }
};

// Sleeps until the peer's number is `wanted`, without timeouts. False: the watchdog has ended it.
bool sleep_until(Memory& memory, Doorbells& doorbells, int32_t peer, uint64_t wanted, bool anything) {
  while (memory.numbers[peer].value.load(std::memory_order_acquire) < wanted) {
    doorbells.prepare_sleep(anything ? Doorbells::kAnything : peer);
    if (memory.numbers[peer].value.load(std::memory_order_acquire) < wanted) {
      pollfd bell{doorbells.event_fd(), POLLIN, 0};
      if (::poll(&bell, 1, kWatchdogMs) == 0) return false;
    }
    doorbells.finish_sleep();
  }
  return true;
}

// Every rank counts up in step with the next one. Every wait that does not end at once is a sleep.
bool count_up(Memory& memory, int32_t rank, uint64_t steps) {
  Result<Doorbells> opened = Doorbells::open(memory.shared, memory.places, rank, kRanks);
  if (!opened.ok()) return false;
  Doorbells doorbells = std::move(opened).value();
  memory.ready.fetch_add(1);
  while (memory.ready.load() != kRanks) ::sched_yield();
  Rng rng(static_cast<uint64_t>(rank) + 1);
  for (uint64_t step = 1; step <= steps; ++step) {
    const bool aside = step % 3 == 0;
    memory.numbers[rank].value.store(step, std::memory_order_release);
    aside ? doorbells.wrote_aside() : doorbells.wrote();
    for (uint64_t i = rng.next() % 200; i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!sleep_until(memory, doorbells, (rank + 1) % kRanks, step, aside)) return false;
  }
  return true;
}

bool count_up_in_processes(Memory& memory, uint64_t steps) {
  std::vector<pid_t> children;
  for (int32_t r = 1; r < kRanks; ++r) {
    const pid_t child = fork();
    if (child == 0) _exit(count_up(memory, r, steps) ? 0 : 1);
    children.push_back(child);
  }
  bool all = count_up(memory, 0, steps);
  for (const pid_t child : children) {
    int status = 0;
    all = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 && all;
  }
  return all;
}

TEST(Doorbells, LoseNoWakeUpBetweenProcesses) {
  Memory* const memory = Memory::make();
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(count_up_in_processes(*memory, 20'000));
  munmap(memory, sizeof(Memory));
}

// A rank's system has no heavy fences, so the sleeper requires all writers to execute their own.
TEST(Doorbells, LoseNoWakeUpWhereWritersExecuteFences) {
  Memory* const memory = Memory::make();
  ASSERT_NE(memory, nullptr);
  memory->shared.attention.store(Doorbells::kFences);
  EXPECT_TRUE(count_up_in_processes(*memory, 20'000));
  EXPECT_EQ(memory->shared.attention.load(), Doorbells::kFences) << "sleepers that are none";
  munmap(memory, sizeof(Memory));
}

TEST(Doorbells, LoseNoWakeUpBetweenThreads) {
  Memory* const memory = Memory::make();
  ASSERT_NE(memory, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int32_t r = 0; r < kRanks; ++r) threads.emplace_back([&, r] { good += count_up(*memory, r, 5'000) ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good.load(), kRanks);
  munmap(memory, sizeof(Memory));
}

bool readable(const Doorbells& doorbells) {
  pollfd bell{doorbells.event_fd(), POLLIN, 0};
  return ::poll(&bell, 1, 0) == 1;
}

TEST(Doorbells, RingForThoseOnlyThatAwaitTheWriter) {
  Memory* const memory = Memory::make();
  ASSERT_NE(memory, nullptr);
  std::vector<Doorbells> doorbells;
  for (int32_t r = 0; r < kRanks; ++r) {
    doorbells.push_back(Doorbells::open(memory->shared, memory->places, r, kRanks).value());
  }
  doorbells[0].prepare_sleep(1);
  doorbells[2].wrote();
  EXPECT_FALSE(readable(doorbells[0]));
  doorbells[1].wrote_aside();
  EXPECT_FALSE(readable(doorbells[0]));
  doorbells[1].wrote();
  EXPECT_TRUE(readable(doorbells[0]));
  doorbells[0].finish_sleep();
  EXPECT_FALSE(readable(doorbells[0]));
  doorbells[1].wrote();
  EXPECT_FALSE(readable(doorbells[0])) << "it is awake";
  doorbells[0].prepare_sleep(Doorbells::kAnything);
  doorbells[2].wrote_aside();
  EXPECT_TRUE(readable(doorbells[0]));
  doorbells[0].finish_sleep();
  doorbells[0].finish_sleep();
  EXPECT_EQ(memory->shared.attention.load() & ~Doorbells::kFences, 0u);
  munmap(memory, sizeof(Memory));
}

// A rank that found a sleeper may ring it when the sleep is over. The next sleep may be one for something else.
TEST(Doorbells, DropARingThatComesAfterItsSleep) {
  Memory* const memory = Memory::make();
  ASSERT_NE(memory, nullptr);
  Doorbells sleeper = Doorbells::open(memory->shared, memory->places, 0, kRanks).value();
  Doorbells writer = Doorbells::open(memory->shared, memory->places, 1, kRanks).value();
  sleeper.prepare_sleep(Doorbells::kAnything);
  const uint32_t awaited = memory->places[0].awaited.load();
  sleeper.finish_sleep();
  // As the writer has seen it before.
  memory->places[0].awaited.store(awaited);
  memory->shared.attention.fetch_add(1);
  writer.wrote();
  memory->shared.attention.fetch_sub(1);
  EXPECT_TRUE(readable(sleeper));
  sleeper.finish_sleep();
  EXPECT_FALSE(readable(sleeper));
  munmap(memory, sizeof(Memory));
}

// A stranger that fills the bell's queue wakes its owner without need, but blocks no wake-up.
TEST(Doorbells, AStrangersDatagramsAreNoMoreThanALook) {
  Memory* const memory = Memory::make();
  ASSERT_NE(memory, nullptr);
  Doorbells sleeper = Doorbells::open(memory->shared, memory->places, 0, kRanks).value();
  Doorbells writer = Doorbells::open(memory->shared, memory->places, 1, kRanks).value();
  const DatagramSocket stranger = open_datagrams().value();
  std::string name;
  for (uint64_t word = memory->places[0].name.load(); word != 0; word >>= 8) name += static_cast<char>(word & 0xff);
  for (int i = 0; i < 1000; ++i) ring_datagram(stranger.fd.get(), name);
  sleeper.prepare_sleep(1);
  writer.wrote();
  EXPECT_TRUE(readable(sleeper));
  sleeper.finish_sleep();
  EXPECT_FALSE(readable(sleeper));
  munmap(memory, sizeof(Memory));
}

}  // namespace
}  // namespace trestle
