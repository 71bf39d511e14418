// The log: one line per message, with levels and subsystems as in NCCL. The process's only sink; any thread, never in a
// signal handler.
//
// `LOG(kWarn, kNet, "peer %d went away", peer);` When the message is off it costs one relaxed load and a compare, and
// the arguments are not evaluated. Off until configure_log() is called; process_config() (base/config/config.h) calls
// it with TRESTLE_DEBUG, TRESTLE_DEBUG_SUBSYS and TRESTLE_DEBUG_FILE. A line is one write(2), so lines of several
// processes never mix. Longer messages are cut at 2 KiB. It begins with the time (UTC), the host, the process, the thread
// and the rank: "2026-11-28T10:02:03.004Z node3:533:580 [2] TRESTLE WARN ...".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/mutex.h"
#include "base/result.h"

namespace trestle {

enum class LogLevel : uint8_t { kNone, kVersion, kWarn, kInfo, kTrace };

enum class Subsystem : uint32_t {
  kInit = 1u << 0,
  kBootstrap = 1u << 1,
  kEnv = 1u << 2,
  kColl = 1u << 3,
  kNet = 1u << 4,
  kShm = 1u << 5,
  kGraph = 1u << 6,  // topology
  kTuning = 1u << 7,
  kCall = 1u << 8,
  kAlloc = 1u << 9,
  kP2p = 1u << 10,
};
inline constexpr uint32_t kAllSubsystems = (1u << 11) - 1;

struct LogSettings {
  LogLevel level = LogLevel::kWarn;
  uint32_t subsystems = 0;  // bits of Subsystem; VERSION and WARN messages are written regardless
  std::string file;         // empty: standard error; %h host name, %p process id
};

// Applies to all later messages. kSystemError if the file cannot be opened; the previous settings then stay in force.
Status configure_log(const LogSettings& settings);

// Parse "warn", "INFO", ... and "INIT,NET", "ALL", "^NET,P2P" (all but these). kInvalidArgument names the allowed
// values.
Result<LogLevel> parse_log_level(std::string_view text);
Result<uint32_t> parse_subsystems(std::string_view text);

// A rank of this process makes a communicator. Lines show the rank as long as the process has only one.
void set_log_rank(int rank);

namespace log_internal {
// Level in the upper, subsystem mask in the lower 32 bits, so one load decides.
extern std::atomic<uint64_t> filter;
}  // namespace log_internal

inline bool log_enabled(LogLevel level, Subsystem subsystem) {
  const uint64_t filter = log_internal::filter.load(std::memory_order_relaxed);
  if (static_cast<uint64_t>(level) > filter >> 32) [[likely]]
    return false;
  return level <= LogLevel::kWarn || (filter & static_cast<uint32_t>(subsystem)) != 0;
}

__attribute__((format(printf, 2, 3))) void log_message(LogLevel level, const char* format, ...);

// True the first time it gets a key: `if (once.first(peer)) LOG(kWarn, ...)`. Any thread. Remembers a bounded number of
// keys, then returns false for new ones, so that a stranger cannot fill the log or the memory.
class OncePerKey {
 public:
  explicit OncePerKey(size_t most_keys = 256) : most_keys_(most_keys) {}
  bool first(std::string_view key);

 private:
  const size_t most_keys_;
  Mutex mutex_;
  std::unordered_set<std::string> seen_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle

#define LOG(level, subsystem, ...)                                                                        \
  do {                                                                                                    \
    if (::trestle::log_enabled(::trestle::LogLevel::level, ::trestle::Subsystem::subsystem)) [[unlikely]] \
      ::trestle::log_message(::trestle::LogLevel::level, __VA_ARGS__);                                    \
  } while (false)
