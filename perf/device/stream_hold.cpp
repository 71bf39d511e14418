// stream_hold: does a user's stream that is held stall the library's own stream? The way in which a caller's stream can
// wait for a collective follows from the answer.
//
// For users that are threads and processes beside the measuring one, for CUDA_DEVICE_MAX_CONNECTIONS as it is and 1,
// and for few and many streams of the user, some of which are held by a stream wait, a host function, or a kernel of
// one block that spins. Prints a row for each: microseconds of a small fill on the library's stream, and of a copy to
// and from pinned memory there, alone and beside the held streams; "stalled" where one took longer than a second,
// "hangs" where a call did not come back. A second table is about streams that are held by a wait while another thread
// of the user is in a call of the driver that may wait for them: whether the library can submit anything meanwhile.
//
// Each cell is measured in a process of its own (stream_hold --cell ...), because the driver reads the variable when it
// starts, and because a call that does not come back can only be ended with its process. Ends with 1 if a cell failed
// for another reason than that.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
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

constexpr size_t kRounds = 200;
constexpr uint64_t kWorkBytes = 64 << 10;
constexpr std::chrono::seconds kStalled(1);
constexpr std::chrono::seconds kLongEnough(3);  // limits the rounds of a cell: a spinning kernel gives up after a while
constexpr std::chrono::seconds kHangs(15);      // for a cell, with all that it opens

// The library's side: a stream of its own on the same device.
class Library {
 public:
  Status begin() {
    devices_ = TRY(open_devices());
    device_ = TRY(devices_->open(0));
    memory_ = TRY(device_->allocate(kWorkBytes));
    pinned_ = TRY(device_->allocate_pinned(kWorkBytes));
    stream_ = TRY(device_->make_stream(true));
    event_ = TRY(device_->make_event(false, false));
    return {};
  }

  enum class Kind { kFill, kCopies };
  // Median microseconds; no value: a piece of work was not done within a second.
  Result<std::optional<double>> measure(Kind kind) {
    std::vector<double> times;
    const Clock::time_point begin = Clock::now();
    while (times.size() < kRounds && Clock::now() - begin < kLongEnough) {
      const Clock::time_point start = Clock::now();
      TRY(submit(kind));
      TRY(device_->record(event_, stream_));
      while (!TRY(device_->is_done(event_))) {
        if (Clock::now() - start > kStalled) return std::optional<double>();
      }
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return std::optional<double>(*middle);
  }

  Status end() { return device_->synchronize(stream_); }

 private:
  Status submit(Kind kind) {
    if (kind == Kind::kFill) return device_->fill(memory_, std::byte{2}, kWorkBytes, stream_);
    TRY(device_->copy(pinned_, memory_, kWorkBytes, stream_));
    return device_->copy(memory_, pinned_, kWorkBytes, stream_);
  }

  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  std::byte* pinned_ = nullptr;
  StreamHandle* stream_ = nullptr;
  EventHandle* event_ = nullptr;
};

struct Cell {
  bool processes = false;
  HoldCase hold;
};

constexpr std::array<const char*, 4> kWays = {"nothing", "word", "host", "spin"};
constexpr std::array<const char*, 6> kActs = {"nothing", "load", "pageable", "free", "free_pinned", "unmap"};
constexpr const char* kAsItIs = "default";  // of CUDA_DEVICE_MAX_CONNECTIONS

// The user beside the measuring side: a thread, or a forked process. The fork comes before this process first calls the
// driver, because a child that is forked later cannot use the driver.
class Beside {
 public:
  Status begin(const Cell& cell) {
    std::array<int, 2> to_user;
    std::array<int, 2> from_user;
    if (::pipe2(to_user.data(), O_CLOEXEC) != 0 || ::pipe2(from_user.data(), O_CLOEXEC) != 0) {
      return Error{Code::kSystemError, "no descriptors are left for pipes"};
    }
    const Signals of_user{to_user[0], from_user[1]};
    signals_ = {from_user[0], to_user[1]};
    if (!cell.processes) {
      thread_ = std::thread([this, cell, of_user] {
        ended_ = hold_streams(cell.hold, of_user);
        ::close(of_user.to_write);
      });
      return {};
    }
    child_ = ::fork();
    if (child_ < 0) return Error{Code::kSystemError, "no process could be started"};
    if (child_ == 0) be_the_user(cell, of_user);
    // Each side keeps only its own ends of the pipes, so that it notices when the other side is gone.
    ::close(of_user.to_read);
    ::close(of_user.to_write);
    return {};
  }
  const Signals& signals() const { return signals_; }
  // Closes the user's pipe, so that the user ends, if it has not yet.
  Status end() {
    ::close(signals_.to_write);
    int status = 0;
    if (child_ > 0) ::waitpid(child_, &status, 0);
    if (thread_.joinable()) thread_.join();
    TRY(std::move(ended_));
    if (status != 0) return Error{Code::kSystemError, "the user's process failed"};
    return {};
  }

 private:
  [[noreturn]] void be_the_user(const Cell& cell, const Signals& of_user) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(signals_.to_read);
    ::close(signals_.to_write);
    const Status held = hold_streams(cell.hold, of_user);
    if (!held.ok()) std::fprintf(stderr, "stream_hold: the user: %s\n", held.error().message.c_str());
    ::_exit(held.ok() ? 0 : 1);
  }

  Signals signals_;
  pid_t child_ = -1;
  std::thread thread_;
  Status ended_;
};

struct Times {
  std::optional<double> fill;
  std::optional<double> copies;
};

Result<Times> measure_both(Library& library) {
  const std::optional<double> fill = TRY(library.measure(Library::Kind::kFill));
  if (!fill) return Times{};  // whatever comes behind it waits too
  return Times{fill, TRY(library.measure(Library::Kind::kCopies))};
}

// The library opens the device and warms up before the user holds anything: calls of the driver that open or allocate
// may wait for all work of the device.
Result<Times> measure_beside(const Signals& user, Library& library) {
  TRY(library.begin());
  TRY(measure_both(library));
  TRY(user.send());
  TRY(user.receive());
  const Times measured = TRY(measure_both(library));
  TRY(user.send());
  TRY(library.end());
  return measured;
}

Result<Times> measure(const Cell& cell) {
  Beside beside;
  TRY(beside.begin(cell));
  Library library;
  auto time = measure_beside(beside.signals(), library);
  // The side that fails first makes the other side fail too, so both errors are printed.
  const Status ended = beside.end();
  if (!ended.ok()) std::fprintf(stderr, "stream_hold: the user: %s\n", ended.error().message.c_str());
  const Times measured = TRY(std::move(time));
  TRY(ended);
  return measured;
}

std::string text_of(const std::optional<double>& time) {
  if (!time) return "stalled";
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", *time);
  return text.data();
}

int run_cell(const Cell& cell) {
  const auto measured = measure(cell);
  if (!measured.ok()) {
    std::fprintf(stderr, "stream_hold: %s\n", measured.error().message.c_str());
    return 1;
  }
  std::printf("%s/%s", text_of(measured.value().fill).c_str(), text_of(measured.value().copies).c_str());
  return 0;
}

// What a process writes to `from` until it ends; no value: it takes longer than kHangs.
std::optional<std::string> read_all(int from) {
  const Clock::time_point limit = Clock::now() + kHangs;
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
    pollfd waits{from, POLLIN, 0};
    if (left <= 0) return std::nullopt;
    if (::poll(&waits, 1, static_cast<int>(left)) <= 0) continue;
    std::array<char, 256> some;
    const ssize_t got = ::read(from, some.data(), some.size());
    if (got <= 0) return text;
    text.append(some.data(), static_cast<size_t>(got));
  }
}

pid_t spawn(std::vector<std::string> words, int output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? child : -1;
}

// Measures one cell in a process of its own. Returns the cell's text. Sets `failed` if the process failed.
std::string cell_text(const Cell& cell, const char* connections, bool& failed) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    failed = true;
    return "failed";
  }
  const pid_t child = spawn({"stream_hold", "--cell", cell.processes ? "process" : "thread",
                             kWays[static_cast<size_t>(cell.hold.way)], std::to_string(cell.hold.streams),
                             std::to_string(cell.hold.held), connections, kActs[static_cast<size_t>(cell.hold.act)]},
                            ends[1]);
  ::close(ends[1]);
  const std::optional<std::string> text = child > 0 ? read_all(ends[0]) : "";
  ::close(ends[0]);
  if (!text) ::kill(child, SIGKILL);  // and its user ends with it
  int status = 1;
  if (child > 0) ::waitpid(child, &status, 0);
  if (!text) return "hangs";
  if (status == 0 && !text->empty()) return *text;
  failed = true;
  return "failed";
}

// The user's thread beside the holding one comes back when the streams go on, or before.
void print_acts(bool& failed) {
  std::printf("# the same, with a stream that is held by a word while another thread of the user is in the driver\n");
  std::printf("# %15s %15s %15s %15s %15s\n ", "load", "pageable", "free", "free_pinned", "unmap");
  for (const HoldAct act :
       {HoldAct::kLoad, HoldAct::kPageable, HoldAct::kFree, HoldAct::kFreePinned, HoldAct::kUnmap}) {
    std::fflush(stdout);
    std::printf(" %15s", cell_text({false, {HoldWay::kWord, 1, 1, act}}, kAsItIs, failed).c_str());
  }
  std::printf("\n");
}

int run_all() {
  if (const auto devices = open_devices(); !devices.ok()) {
    std::printf("skipped: %s\n", devices.error().message.c_str());
    return 0;
  }
  std::printf(
      "# median microseconds of a small fill / of two small copies on the library's stream beside a user's held "
      "streams\n");
  std::printf("# %-10s %-12s %8s %6s %15s %15s %15s %15s\n", "user", "connections", "streams", "held", "free", "word",
              "host", "spin");
  bool failed = false;
  for (const bool processes : {false, true}) {
    for (const char* const connections : {kAsItIs, "1"}) {
      for (const auto& [streams, held] : {std::pair<int, int>{1, 1}, {64, 1}, {64, 64}}) {
        std::printf("  %-10s %-12s %8d %6d", processes ? "process" : "thread", connections, streams, held);
        for (const HoldWay way : {HoldWay::kNothing, HoldWay::kWord, HoldWay::kHost, HoldWay::kSpin}) {
          std::fflush(stdout);
          std::printf(" %15s", cell_text({processes, {way, streams, held}}, connections, failed).c_str());
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
  print_acts(failed);
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return run_all();
  if (argc != 8 || std::strcmp(argv[1], "--cell") != 0) {
    std::fprintf(stderr, "Usage: stream_hold\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Cell cell;
  cell.processes = std::strcmp(argv[2], "process") == 0;
  const auto way =
      std::find_if(kWays.begin(), kWays.end(), [&](const char* one) { return std::strcmp(one, argv[3]) == 0; });
  const auto act =
      std::find_if(kActs.begin(), kActs.end(), [&](const char* one) { return std::strcmp(one, argv[7]) == 0; });
  if (way == kWays.end() || act == kActs.end()) return 2;
  cell.hold.way = static_cast<HoldWay>(way - kWays.begin());
  cell.hold.streams = std::atoi(argv[4]);
  cell.hold.held = std::atoi(argv[5]);
  cell.hold.act = static_cast<HoldAct>(act - kActs.begin());
  if (std::strcmp(argv[6], kAsItIs) != 0) ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", argv[6], 1);
  return run_cell(cell);
}
