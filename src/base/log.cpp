#include "base/log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/files/file_size.h"
#include "base/fork.h"
#include "base/host.h"
#include "base/text/names.h"
#include "base/text/value_text.h"
#include "base/unique_fd.h"

namespace trestle {
namespace log_internal {
std::atomic<uint64_t> filter{0};
}  // namespace log_internal

namespace {

// A replaced descriptor stays open for the life of the process: another thread may be about to write to it.
std::atomic<int> sink_fd{STDERR_FILENO};
constexpr int kSeveralRanks = -2;
std::atomic<int> log_rank{-1};  // of the process

struct Name {
  const char* name;
  uint32_t value;
};

constexpr std::array<Name, 5> kLevels = {{{"NONE", 0}, {"VERSION", 1}, {"WARN", 2}, {"INFO", 3}, {"TRACE", 4}}};
constexpr std::array<Name, 13> kSubsystems = {{
    {"INIT", static_cast<uint32_t>(Subsystem::kInit)},
    {"BOOTSTRAP", static_cast<uint32_t>(Subsystem::kBootstrap)},
    {"ENV", static_cast<uint32_t>(Subsystem::kEnv)},
    {"COLL", static_cast<uint32_t>(Subsystem::kColl)},
    {"NET", static_cast<uint32_t>(Subsystem::kNet)},
    {"SHM", static_cast<uint32_t>(Subsystem::kShm)},
    {"GRAPH", static_cast<uint32_t>(Subsystem::kGraph)},
    {"TOPOLOGY", static_cast<uint32_t>(Subsystem::kGraph)},
    {"TUNING", static_cast<uint32_t>(Subsystem::kTuning)},
    {"CALL", static_cast<uint32_t>(Subsystem::kCall)},
    {"ALLOC", static_cast<uint32_t>(Subsystem::kAlloc)},
    {"P2P", static_cast<uint32_t>(Subsystem::kP2p)},
    {"ALL", kAllSubsystems},
}};

template <size_t kCount>
Result<uint32_t> value_of(const std::array<Name, kCount>& names, std::string_view text, const char* what) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return TRY(row_named(names, upper, what))->value;
}

std::string expand_file_name(const std::string& pattern) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') name += host_name();
    if (next == 'p') name += std::to_string(getpid());
    if (next == '%') name += '%';
    if (next == 'h' || next == 'p' || next == '%') {
      ++i;
    } else {
      name += pattern[i];
    }
  }
  return name;
}

size_t write_prefix(char* buffer, size_t size, LogLevel level) {
  static constinit PerProcess<const std::string> host;
  const long thread_id = syscall(SYS_gettid);  // read each time: a kept number would be wrong after fork
  std::array<char, 24> rank{};
  const int number = log_rank.load(std::memory_order_relaxed);
  if (number >= 0) std::snprintf(rank.data(), rank.size(), " [%d]", number);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  std::array<char, 24> seconds{};
  std::strftime(seconds.data(), seconds.size(), "%FT%T", &parts);
  const int length = std::snprintf(buffer, size, "%s.%03ldZ %s:%ld:%ld%s TRESTLE %s ", seconds.data(),
                                   now.tv_nsec / 1'000'000, host.get(host_name).c_str(), static_cast<long>(getpid()),
                                   thread_id, rank.data(), kLevels[static_cast<size_t>(level)].name);
  return length < 0 ? 0 : std::min(static_cast<size_t>(length), size - 1);
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  return static_cast<LogLevel>(TRY(value_of(kLevels, text, "a log level")));
}

Result<uint32_t> parse_subsystems(std::string_view text) {
  const bool all_but = !text.empty() && text.front() == '^';
  if (all_but) text.remove_prefix(1);
  uint32_t mask = 0;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    if (!item.empty()) mask |= TRY(value_of(kSubsystems, item, "a log subsystem"));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return all_but ? kAllSubsystems & ~mask : mask;
}

Status configure_log(const LogSettings& settings) {
  int fd = STDERR_FILENO;
  if (!settings.file.empty()) {
    const std::string name = expand_file_name(settings.file);
    fd = above_standard_streams(open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (fd < 0) {
      return Error{Code::kSystemError, "cannot open the log file '" + name + "': " + std::strerror(errno)};
    }
  }
  sink_fd.store(fd, std::memory_order_release);
  log_internal::filter.store(static_cast<uint64_t>(settings.level) << 32 | settings.subsystems,
                             std::memory_order_release);
  return {};
}

void set_log_rank(int rank) {
  int before = -1;
  if (!log_rank.compare_exchange_strong(before, rank) && before != rank) log_rank.store(kSeveralRanks);
}

void log_message(LogLevel level, const char* format, ...) {
  const int saved_errno = errno;  // callers may log between a failed system call and their use of errno
  std::array<char, 2048> line;
  size_t length = write_prefix(line.data(), line.size() - 1, level);
  va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(line.data() + length, line.size() - 1 - length, format, arguments);
  va_end(arguments);
  if (wanted > 0) length = std::min(length + static_cast<size_t>(wanted), line.size() - 2);
  line[length++] = '\n';
  // A log that cannot be written must not stop the job.
  (void)write_all(sink_fd.load(std::memory_order_acquire), {line.data(), length});
  errno = saved_errno;
}

bool OncePerKey::first(std::string_view key) {
  const MutexLock lock(mutex_);
  if (seen_.size() >= most_keys_) return false;
  return seen_.emplace(key).second;
}

}  // namespace trestle
