// The limit of open files of a process that will open many. Each case runs in a child, because the limits of a process
// cannot all be restored.
#include "base/descriptor_room.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>

namespace trestle {
namespace {

constexpr rlim_t kLow = 64;

// A child with these limits reports each wrong claim on standard error.
class Child {
 public:
  void expect(bool claim, const char* what) {
    if (claim) return;
    std::cerr << "not so: " << what << "\n";
    well_ = false;
  }
  static rlim_t soft_limit() {
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
  }
  bool well() const { return well_; }

 private:
  bool well_ = true;
};

bool can_have(rlim_t hard) {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max >= hard;
}

void in_child(rlim_t hard, const std::function<void(Child&)>& body) {
  if (!can_have(hard)) GTEST_SKIP() << "the hard limit of open files is lower";
  const pid_t pid = fork();
  if (pid == 0) {
    Child child;
    const rlimit limits{kLow, hard};
    child.expect(setrlimit(RLIMIT_NOFILE, &limits) == 0, "the limits are set");
    body(child);
    _exit(child.well() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
}

TEST(DescriptorRoom, RaisesTheSoftLimit) {
  in_child(2000, [](Child& child) {
    const DescriptorRoom room(1000);
    child.expect(Child::soft_limit() >= 1000, "there is room");
    child.expect(Child::soft_limit() < 2000, "no more than is needed");
    child.expect(room.shortage().empty(), "nothing is short");
  });
}

TEST(DescriptorRoom, OfAllObjectsTogetherCounts) {
  in_child(2000, [](Child& child) {
    const DescriptorRoom few(10);
    child.expect(Child::soft_limit() == kLow, "what fits leaves the limit alone");
    const DescriptorRoom first(190);
    {
      const DescriptorRoom gone(200);
      child.expect(Child::soft_limit() >= 400, "two objects open both");
    }
    DescriptorRoom second(500);
    child.expect(Child::soft_limit() >= 700, "the next two");
    child.expect(Child::soft_limit() < 900, "without the one that has gone");
    const DescriptorRoom moved = std::move(second);
    child.expect(moved.count() == 500 && second.count() == 0, "a room moves");
  });
}

TEST(DescriptorRoom, SaysWhereTheHardLimitIsTooLow) {
  in_child(600, [](Child& child) {
    const DescriptorRoom room(1000);
    child.expect(Child::soft_limit() == 600, "as many as there may be");
    child.expect(room.shortage() == "1000 open files may be needed, and ulimit -n is 600, its hard limit 600",
                 "the numbers are said");
  });
}

TEST(DescriptorRoom, IsMadeForWhatIsAboutToBeOpened) {
  in_child(600, [](Child& child) {
    child.expect(make_descriptor_room("A", 10).ok() && Child::soft_limit() == kLow, "what fits leaves the limit alone");
    child.expect(make_descriptor_room("A", kLow).ok() && Child::soft_limit() > kLow, "the limit is raised");
    const Status refused = make_descriptor_room("A", 600);
    child.expect(!refused.ok() && refused.error().message.starts_with("A needs 600 more open files, and ") &&
                     refused.error().message.ends_with(" are open: ulimit -n is 600, its hard limit 600"),
                 "the numbers are said");
  });
}

TEST(DescriptorRoom, LowersNoLimit) {
  in_child(600, [](Child& child) {
    const rlimit all{600, 600};
    child.expect(setrlimit(RLIMIT_NOFILE, &all) == 0, "the limit is set");
    const DescriptorRoom room(300);
    child.expect(Child::soft_limit() == 600, "it stays");
  });
}

}  // namespace
}  // namespace trestle
