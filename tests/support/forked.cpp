#include "support/forked.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>
#include <vector>

#include "support/ranks.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRESTLE_TEST_WITH_ASAN 1
#endif
#endif

namespace {
bool is_forked = false;
}  // namespace

#ifdef TRESTLE_TEST_WITH_ASAN
// The sanitizer of leaks believes that a child still has its parent's threads, whose stacks it cannot find. So what
// these threads hold looks lost to it in the child.
extern "C" int __lsan_is_turned_off() {
  return is_forked ? 1 : 0;
}
#endif

namespace ranks {

bool children_may_allocate() {
#ifdef TRESTLE_TEST_WITH_ASAN
  return false;
#else
  return true;
#endif
}

namespace {

int failures() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

}  // namespace

Forked::Forked(const std::function<void()>& body) {
  std::cout.flush();
  fflush(nullptr);
  const pid_t parent = getpid();
  const int before = failures();
  pid_ = fork();
  if (pid_ < 0) ADD_FAILURE() << "fork: " << std::strerror(errno);
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(9);
  is_forked = true;
  body();
  exit(failures() == before ? 0 : 1);
}

Forked::~Forked() {
  if (!ended_ && pid_ > 0) waitpid(pid_, nullptr, 0);
}

void Forked::expect_end(int signal) {
  int status = 0;
  ASSERT_EQ(waitpid(pid_, &status, 0), pid_);
  ended_ = true;
  if (signal != 0) {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << "wait status " << status;
  } else {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child failed, wait status " << status;
  }
}

void use_own_communicator(int ranks) {
  std::vector<trestleComm_t> comms(static_cast<size_t>(ranks));
  ASSERT_TRUE(succeeded(trestleCommInitAll(comms.data(), ranks, nullptr)));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&comms, r, ranks] {
      const trestleComm_t comm = comms[static_cast<size_t>(r)];
      trestleStream_t stream = nullptr;
      ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
      constexpr size_t kMost = 100'000;
      void* memory = nullptr;
      ASSERT_TRUE(succeeded(trestleMemAlloc(&memory, kMost * sizeof(int32_t))));
      auto* const data = static_cast<int32_t*>(memory);
      for (const size_t count : {size_t{1}, kMost}) {
        for (size_t i = 0; i < count; ++i) data[i] = r + 1;
        ASSERT_TRUE(succeeded(trestleAllReduce(data, data, count, trestleInt32, trestleSum, comm, stream), comm));
        ASSERT_TRUE(succeeded(trestleStreamSynchronize(stream), comm));
        const int32_t sum = ranks * (ranks + 1) / 2;
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], sum) << "element " << i << " of " << count;
      }
      EXPECT_TRUE(succeeded(trestleMemFree(memory)));
      EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Nursery::Nursery() {
  EXPECT_EQ(pipe(gate_), 0);
  EXPECT_EQ(pipe(alive_), 0);
}

Nursery::~Nursery() {
  for (const int end : {gate_[0], gate_[1], alive_[1]}) close(end);
  char nothing;
  while (read(alive_[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  close(alive_[0]);
}

void Nursery::enter() {
  close(gate_[1]);
}

void Nursery::fork_one() {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0) << std::strerror(errno);
  if (pid != 0) return;
  char nothing;
  while (read(gate_[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

}  // namespace ranks
