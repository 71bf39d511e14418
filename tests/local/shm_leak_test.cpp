// A rank is killed in the middle of a job over shared memory. The survivor is told which rank, and nothing is left
// behind.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "memory/mem_alloc.h"
#include "memory/region.h"
#include "transport/shm/shm.h"

namespace trestle {
namespace {

constexpr int kGenerousMs = 60'000;

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  DIR* const directory = opendir(folder);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    // Only files that this transport could leave, because other tests run at the same time.
    for (const char* ours : {"trestle-lane", "trestle-data", "trestle-memory", "trestle-shm"}) {
      if (name.find(ours) != std::string::npos) names.insert(name);
    }
  }
  closedir(directory);
  return names;
}

// Whether the process has a listener with a name like this one.
bool socket_named(const std::string& part) {
  std::ifstream sockets("/proc/net/unix");
  std::string line;
  while (std::getline(sockets, line)) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

struct Meeting {
  std::atomic<int> written[2];
  std::array<char, 256> address[2];
};

EndpointConfig config_of(int32_t rank) {
  EndpointConfig config;
  config.rank = rank;
  config.ranks = 2;
  config.job = "shm leak test";
  config.secret.assign(32, std::byte{5});
  config.peer_names = {"rank 0", "rank 1 (the victim)"};
  return config;
}

std::unique_ptr<Transport> meet(Meeting& meeting, int32_t rank) {
  auto transport = make_shm_transport(config_of(rank), {}).value();
  std::strncpy(meeting.address[rank].data(), transport->address().c_str(), meeting.address[rank].size() - 1);
  meeting.written[rank] = 1;
  while (meeting.written[1 - rank] == 0) sched_yield();
  const std::vector<std::string> addresses{meeting.address[0].data(), meeting.address[1].data()};
  EXPECT_TRUE(transport->set_peers(addresses, config_of(rank).peer_names).ok());
  return transport;
}

// Sends one long message from each kind of memory, so that every kind of segment exists. Receives nothing.
void victim(Meeting& meeting) {
  auto transport = meet(meeting, 1);
  constexpr size_t kBytes = 300'000;
  std::vector<std::byte> ordinary(kBytes);
  auto* const allocated = static_cast<std::byte*>(mem_alloc(kBytes).value());
  const Region shared = look_at(allocated, kBytes, nullptr);
  const ConstPiece pieces[2] = {{ordinary.data(), kBytes}, {allocated, kBytes, &shared}};
  SendRequest requests[2];
  for (uint64_t i = 0; i < 2; ++i) {
    requests[i].tag.operation = i;
    requests[i].bytes = kBytes;
    requests[i].pieces = {&pieces[i], 1};
    while (!transport->post_send(requests[i]).value()) (void)transport->progress();
  }
  while (transport->progress().ok()) sched_yield();
  _exit(0);
}

TEST(ShmLeak, AKilledRankIsNamedAndLeavesNothing) {
  const std::set<std::string> shm_before = names_in("/dev/shm");
  const std::set<std::string> tmp_before = names_in("/tmp");
  auto* const meeting =
      static_cast<Meeting*>(mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(meeting, MAP_FAILED);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) victim(*meeting);

  auto transport = meet(*meeting, 0);
  const std::string victim_address = meeting->address[1].data();
  EXPECT_TRUE(socket_named(victim_address));
  RecvRequest views[2];
  for (uint64_t i = 0; i < 2; ++i) {
    views[i].peer = 1;
    views[i].tag.operation = i;
    views[i].bytes = 300'000;
    ASSERT_TRUE(transport->post_recv(views[i]).ok());
  }
  while (views[0].state != RequestState::kDone || views[1].state != RequestState::kDone) {
    const Result<bool> moved = transport->progress();
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    sched_yield();
  }
  ASSERT_EQ(kill(child, SIGKILL), 0);

  // The survivor is told of it without polling.
  Result<bool> moved = transport->progress();
  while (moved.ok()) {
    if (transport->prepare_sleep()) {
      pollfd watched{transport->event_fd(), POLLIN, 0};
      ASSERT_EQ(poll(&watched, 1, kGenerousMs), 1) << "nobody told that the peer died";
    }
    transport->finish_sleep();
    moved = transport->progress();
  }
  EXPECT_EQ(moved.error().code, Code::kRemoteError);
  EXPECT_NE(moved.error().message.find("rank 1 (the victim)"), std::string::npos) << moved.error().message;
  // Received data stays readable: the memory outlives its owner while a reader maps it.
  uint64_t sum = 0;
  for (const RecvRequest& view : views) {
    for (const ConstPiece& piece : view.view) {
      for (size_t i = 0; i < piece.bytes; ++i) sum += static_cast<uint64_t>(piece.data[i]);
    }
  }
  EXPECT_EQ(sum, 0u);

  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  transport.reset();
  EXPECT_FALSE(socket_named(victim_address));
  EXPECT_EQ(names_in("/dev/shm"), shm_before);
  EXPECT_EQ(names_in("/tmp"), tmp_before);
  munmap(meeting, sizeof(Meeting));
}

}  // namespace
}  // namespace trestle
