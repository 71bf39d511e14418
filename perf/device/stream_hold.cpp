// stream_hold: does a user's stream that is held stall the library's own stream? The way in which a caller's stream can
// wait for a collective follows from the answer.
//
// For users that are threads and processes beside the measuring one, for CUDA_DEVICE_MAX_CONNECTIONS as it is and 1,
// and for few and many streams of the user, some of which are held by a stream wait, a host function, or a kernel of
// one block that spins. Prints a row for each: microseconds of a small piece of work on the library's stream, alone and
// beside the held streams, or "stalled" where it took longer than a second.
//
// Each row runs in a process of its own (stream_hold --row ...), because the driver reads the variable when it starts.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "device/device.h"
#include "perf/device/holding.h"

using namespace trestle;
using namespace trestle::perf;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 200;
constexpr uint64_t kWorkBytes = 64 << 10;
constexpr std::chrono::seconds kStalled(1);

// The library's side: a stream of its own on the same device.
class Library {
 public:
  Status begin() {
    devices_ = TRY(open_devices());
    device_ = TRY(devices_->open(0));
    memory_ = TRY(device_->allocate(kWorkBytes));
    stream_ = TRY(device_->make_stream(true));
    event_ = TRY(device_->make_event(false, false));
    return {};
  }

  // Median microseconds; no value: a piece of work was not done within a second.
  Result<std::optional<double>> measure() {
    std::vector<double> times;
    for (int i = 0; i < kRounds; ++i) {
      const Clock::time_point start = Clock::now();
      TRY(device_->fill(memory_, std::byte{2}, kWorkBytes, stream_));
      TRY(device_->record(event_, stream_));
      while (!TRY(device_->is_done(event_))) {
        if (Clock::now() - start > kStalled) return std::optional<double>();
      }
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return std::optional<double>(times[kRounds / 2]);
  }

  Status end() { return device_->synchronize(stream_); }

 private:
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  StreamHandle* stream_ = nullptr;
  EventHandle* event_ = nullptr;
};

struct Row {
  bool processes = false;
  HoldCase hold;
};

constexpr std::array<const char*, 4> kWays = {"nothing", "word", "host", "spin"};

std::string microseconds(const std::optional<double>& time) {
  if (!time) return "   stalled";
  char text[32];
  std::snprintf(text, sizeof text, "%10.1f", *time);
  return text;
}

Result<std::optional<double>> measure_beside(const Row& row, const HoldCase& hold) {
  std::array<int, 2> to_user;
  std::array<int, 2> from_user;
  if (::pipe(to_user.data()) != 0 || ::pipe(from_user.data()) != 0) {
    return Error{Code::kSystemError, "no descriptors are left for pipes"};
  }
  const Signals of_user{to_user[0], from_user[1]};
  const Signals of_library{from_user[0], to_user[1]};
  pid_t child = -1;
  Status user;
  std::thread thread;
  // Before this process has called the driver: afterwards a fork could not use it.
  if (row.processes) {
    child = ::fork();
    if (child == 0) ::_exit(hold_streams(hold, of_user).ok() ? 0 : 1);
  } else {
    thread = std::thread([&] { user = hold_streams(hold, of_user); });
  }
  Result<std::optional<double>> time = [&]() -> Result<std::optional<double>> {
    TRY(of_library.receive());
    Library library;
    TRY(library.begin());
    const std::optional<double> measured = TRY(library.measure());
    TRY(of_library.send());
    TRY(library.end());
    return measured;
  }();
  if (!time.ok()) [[maybe_unused]]
    const Status told = of_library.send();  // so that the user ends
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  if (thread.joinable()) thread.join();
  TRY(std::move(user));
  if (status != 0) return Error{Code::kSystemError, "the user's process failed"};
  return time;
}

int run_row(const Row& row, HoldCase hold) {
  const auto measured = measure_beside(row, hold);
  if (!measured.ok()) {
    std::printf("    failed: %s\n", measured.error().message.c_str());
    return 1;
  }
  std::printf("%s\n", microseconds(measured.value()).c_str());
  return 0;
}

// Runs one row in a process of its own and returns what it prints.
std::string row_text(const Row& row, HoldWay way, const char* connections) {
  std::string command;
  if (*connections != '\0') command = std::string("CUDA_DEVICE_MAX_CONNECTIONS=") + connections + " ";
  std::array<char, 4096> self{};
  if (::readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) return "failed: no /proc\n";
  command += std::string("'") + self.data() + "' --row " + (row.processes ? "processes" : "threads") + " " +
             kWays[static_cast<size_t>(way)] + " " + std::to_string(row.hold.streams) + " " +
             std::to_string(row.hold.held);
  std::FILE* const child = ::popen(command.c_str(), "r");
  if (child == nullptr) return "failed: no process could be started\n";
  std::array<char, 256> line{};
  std::string text;
  while (std::fgets(line.data(), line.size(), child) != nullptr) text += line.data();
  ::pclose(child);
  return text.empty() ? "failed\n" : text;
}

std::string without_newline(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int run_all() {
  if (const auto devices = open_devices(); !devices.ok()) {
    std::printf("skipped: %s\n", devices.error().message.c_str());
    return 0;
  }
  std::printf("# median microseconds of a small fill on the library's stream beside a user's held streams\n");
  std::printf("# %-10s %-12s %8s %6s %10s %10s %10s %10s\n", "user", "connections", "streams", "held", "free", "word",
              "host", "spin");
  for (const bool processes : {false, true}) {
    for (const char* const connections : {"", "1"}) {
      for (const auto& [streams, held] : {std::pair<int, int>{1, 1}, {64, 1}, {64, 64}}) {
        const Row row{processes, {HoldWay::kNothing, streams, held}};
        std::printf("  %-10s %-12s %8d %6d", processes ? "process" : "thread",
                    *connections == '\0' ? "default" : connections, streams, held);
        for (const HoldWay way : {HoldWay::kNothing, HoldWay::kWord, HoldWay::kHost, HoldWay::kSpin}) {
          std::printf(" %10s", without_newline(row_text(row, way, connections)).c_str());
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return run_all();
  if (argc != 6 || std::strcmp(argv[1], "--row") != 0) {
    std::fprintf(stderr, "Usage: stream_hold\n");
    return 2;
  }
  Row row;
  row.processes = std::strcmp(argv[2], "processes") == 0;
  const auto way =
      std::find_if(kWays.begin(), kWays.end(), [&](const char* one) { return std::strcmp(one, argv[3]) == 0; });
  row.hold.way = static_cast<HoldWay>(way - kWays.begin());
  row.hold.streams = std::atoi(argv[4]);
  row.hold.held = std::atoi(argv[5]);
  return run_row(row, row.hold);
}
