// The state of a forked child: it has no descriptor of a UniqueFd, and has its own process-wide objects.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "base/unique_fd.h"

namespace trestle {
namespace {

const bool kWatched = watch_forks();

// Runs the body in a forked child. A child cannot report gtest failures, so it returns whether all is well.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

UniqueFd event() {
  return UniqueFd::open([] { return eventfd(0, EFD_CLOEXEC); });
}

int plain() {
  return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

TEST(UniqueFdOverFork, IsClosedInTheChildOnly) {
  ASSERT_TRUE(kWatched);
  UniqueFd first = event();
  UniqueFd moved = std::move(first);
  UniqueFd reset;
  reset.reset(plain());
  UniqueFd given = event();
  const int free = given.release();
  const int stranger = plain();
  EXPECT_TRUE(
      in_child([&] { return !is_open(moved.get()) && !is_open(reset.get()) && is_open(free) && is_open(stranger); }));
  EXPECT_TRUE(is_open(moved.get()) && is_open(reset.get()));
  close(free);
  close(stranger);
}

TEST(UniqueFdOverFork, OwnsNothingInTheChildOnceInherited) {
  UniqueFd inherited = event();
  const int number = inherited.get();
  EXPECT_TRUE(in_child([&] {
    const int reused = plain();  // the lowest number that is free
    if (reused != number) return false;
    inherited.reset();
    if (!is_open(reused)) return false;
    UniqueFd own = event();
    const int later = own.get();
    return in_child([later] { return !is_open(later); }) && is_open(later);
  }));
}

TEST(UniqueFdOverFork, ANumberThatAUniqueFdHadIsNobodys) {
  UniqueFd gone = event();
  const int number = gone.get();
  gone.reset();
  const int stranger = plain();
  ASSERT_EQ(stranger, number);
  EXPECT_TRUE(in_child([=] { return is_open(stranger); }));
  close(stranger);
}

// In this process only the threads below have event descriptors.
bool has_no_event_descriptor() {
  for (int fd = 0; fd < 256; ++fd) {
    std::array<char, 64> text{};
    const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text.data(), text.size() - 1);
    if (length > 0 && std::string(text.data()).find("eventfd") != std::string::npos) return false;
  }
  return true;
}

TEST(UniqueFdOverFork, NoneIsMissedThatIsJustBeingOpenedOrClosed) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        UniqueFd one = event();
        UniqueFd other = event();
        one = std::move(other);
      }
    });
  }
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(in_child(has_no_event_descriptor)) << "fork " << i;
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

struct Counted {
  int made_by = getpid();
};

TEST(PerProcess, IsMadeOnceInEachProcess) {
  static constinit PerProcess<Counted> object;
  std::atomic<int> made{0};
  const auto make = [&made] {
    made.fetch_add(1);
    return Counted();
  };
  EXPECT_EQ(object.current(), nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { object.get(make); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  Counted* const mine = &object.get(make);
  EXPECT_EQ(object.current(), mine);
  EXPECT_EQ(object.inherited(), nullptr);
  EXPECT_TRUE(in_child([&] {
    if (object.current() != nullptr || object.inherited() != mine) return false;
    const Counted& own = object.get(make);
    return own.made_by == getpid() && &own != mine && object.inherited() == mine && mine->made_by == getppid();
  }));
  EXPECT_EQ(object.current(), mine);
}

TEST(PerProcess, IsMadeLaterWhereItCouldNotBe) {
  static constinit PerProcess<Counted> object;
  EXPECT_THROW(object.get([]() -> Counted { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(object.current(), nullptr);
  EXPECT_EQ(object.get().made_by, getpid());
}

// A thread of the parent makes the object during the fork. The child does not wait for that thread.
TEST(PerProcess, IsNotWaitedForByTheChildOfItsMaker) {
  static constinit PerProcess<Counted> object;
  std::atomic<bool> begun{false};
  std::atomic<bool> finish{false};
  std::thread maker([&] {
    object.get([&] {
      begun = true;
      while (!finish) sched_yield();
      return Counted();
    });
  });
  while (!begun) sched_yield();
  EXPECT_TRUE(in_child([&] { return object.get().made_by == getpid(); }));
  finish = true;
  maker.join();
  EXPECT_EQ(object.get().made_by, getpid());
}

}  // namespace
}  // namespace trestle
