// Processes without standard streams: nothing of the library takes their numbers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace process_limits {
namespace closed_streams_test {
namespace {

using ranks::succeeded;

// The standard streams of this process are closed while it exists.
class NoStreams {
 public:
  NoStreams() {
    for (int fd = 0; fd < 3; ++fd) {
      kept_[static_cast<size_t>(fd)] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
      close(fd);
    }
  }
  ~NoStreams() {
    for (int fd = 0; fd < 3; ++fd) {
      dup2(kept_[static_cast<size_t>(fd)], fd);
      close(kept_[static_cast<size_t>(fd)]);
    }
  }
  NoStreams(const NoStreams&) = delete;
  NoStreams& operator=(const NoStreams&) = delete;
  // Looks whether one of the three numbers is open now.
  void look(const char* when) {
    for (int fd = 0; fd < 3; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) taken_ += std::to_string(fd) + " after " + when + "; ";
    }
  }
  // Numbers that were open where they were looked at.
  const std::string& taken() const { return taken_; }

 private:
  std::array<int, 3> kept_{};
  std::string taken_;
};

trestleResult_t use(trestleComm_t comm) {
  constexpr size_t kCount = size_t{1} << 18;
  std::vector<float> data(kCount, 1.0f);
  trestleResult_t result = trestleAllReduce(data.data(), data.data(), 1, trestleFloat32, trestleSum, comm, nullptr);
  if (result == trestleSuccess)
    result = trestleAllReduce(data.data(), data.data(), kCount, trestleFloat32, trestleSum, comm, nullptr);
  const trestleResult_t waited = trestleCommSynchronize(comm);
  return result == trestleSuccess ? waited : result;
}

// A communicator and a part of it, made, used and destroyed; looks after each step.
trestleResult_t live(ranks::Process& process, const ranks::Settings& settings, NoStreams& streams) {
  trestleComm_t comm = nullptr;
  trestleComm_t part = nullptr;
  trestleResult_t result = ranks::join(process, settings, &comm);
  streams.look("init");
  if (result == trestleSuccess) result = use(comm);
  streams.look("calls");
  if (result == trestleSuccess) result = trestleCommSplit(comm, 0, -process.rank, &part, nullptr);
  if (result == trestleSuccess) result = use(part);
  streams.look("a split");
  if (part != nullptr && result == trestleSuccess) result = trestleCommDestroy(part);
  if (result == trestleSuccess) result = trestleCommDestroy(comm);
  streams.look("the end");
  return result;
}

TEST(ClosedStreams, KeepTheirNumbers) {
  for (const char* transport : {"shm", "tcp"}) {
    const TemporaryFolder folder;
    const ranks::Settings settings{.ranks = 3, .transport = transport};
    ranks::Job job;
    job.ranks = settings.ranks;
    job.env = [&](int rank) {
      return ranks::Env{{"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_FILE", folder.path(std::to_string(rank))}};
    };
    job.body = [&](ranks::Process& process) {
      std::string taken;
      trestleResult_t result = trestleSuccess;
      {
        NoStreams streams;
        result = live(process, settings, streams);
        taken = streams.taken();
      }
      EXPECT_TRUE(succeeded(result));
      EXPECT_EQ(taken, "") << transport;
    };
    ranks::expect_ended_well(ranks::run(job));
    EXPECT_NE(folder.content("0"), "");
  }
}

}  // namespace
}  // namespace closed_streams_test
}  // namespace process_limits
