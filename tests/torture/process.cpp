#include "torture/process.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "torture/lane.h"
#include "torture/leaks.h"

namespace torture {
namespace {

void set_environment(const JobPlan& plan, int process) {
  for (char** entry = environ; *entry != nullptr;) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    const bool ours = name.rfind("TRESTLE_", 0) == 0 || name.rfind("NCCL_", 0) == 0;
    if (ours) {
      unsetenv(name.c_str());
    } else {
      ++entry;
    }
  }
  setenv("TRESTLE_CALIBRATE", "off", 1);
  setenv("TRESTLE_CONF_FILE", "/dev/null", 1);
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  if (plan.rendezvous != Rendezvous::kLauncher) return;
  setenv("RANK", std::to_string(process).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(process).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(plan.ranks).c_str(), 1);
}

// Communicators of all ranks and threads, for layouts in which one call makes those of all ranks: [thread][rank].
std::vector<std::vector<trestleComm_t>> make_all(const JobPlan& plan, Board& board) {
  std::vector<std::vector<trestleComm_t>> comms(static_cast<size_t>(plan.threads));
  for (auto& of_thread : comms) {
    of_thread.resize(static_cast<size_t>(plan.ranks));
    if (!plan.init_all) continue;
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.timeoutMs = plan.deadline_ms;
    if (!plan.blocking) config.blocking = 0;
    if (!plan.layout.dims.empty()) config.dims = plan.layout.dims.c_str();
    if (trestleCommInitAllConfig(of_thread.data(), plan.ranks, &config) == trestleSuccess) continue;
    std::snprintf(board.lane[0][0].wrong, kTextBytes, "CommInitAll: %s", trestleGetLastError(nullptr));
    _exit(3);
  }
  return comms;
}

void run_lanes(const JobPlan& plan, int process, Board& board) {
  const auto comms = make_all(plan, board);
  std::vector<std::thread> threads;
  const int first = process * plan.per_process;
  for (int rank = first; rank < std::min(first + plan.per_process, plan.ranks); ++rank) {
    for (int t = 0; t < plan.threads; ++t) {
      const trestleComm_t world = comms[static_cast<size_t>(t)][static_cast<size_t>(rank)];
      threads.emplace_back([&plan, &board, rank, t, world] { Lane(plan, rank, t, board, world).run(); });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

constexpr int kMostLooks = 2000;

}  // namespace

void run_process(const JobPlan& plan, int process, Board& board) {
  set_environment(plan, process);
  const std::vector<std::string> open_before = open_descriptors();
  run_lanes(plan, process, board);
  // The maker of an id listens for the ranks that use it. If the maker was stopped for too long, no rank will.
  for (int t = 0; t < plan.threads; ++t) {
    if (process == 0 && board.id_made[t] == kNoId) exit(0);
  }
  // A failed rendezvous stays open for late ranks, as long as the ranks were ready to wait.
  std::string left = left_behind(open_before);
  for (int looks = 0; !left.empty() && looks < kMostLooks; ++looks) {
    ::poll(nullptr, 0, 5);
    left = left_behind(open_before);
  }
  std::snprintf(board.left[process], kTextBytes, "%s", left.c_str());
  exit(0);
}

}  // namespace torture
