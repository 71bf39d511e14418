#include "perf/report/progress.h"

#include <unistd.h>

namespace trestle::perf {
namespace {

constexpr double kLongRunSeconds = 2;  // shorter runs need no progress line
constexpr std::chrono::seconds kTick(1);

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string progress_text(uint64_t row, uint64_t total, size_t size_bytes, const char* stage, int64_t seconds) {
  std::string text = "row " + std::to_string(row);
  if (total > 0) text += " of " + std::to_string(total);
  return text + ", " + std::to_string(size_bytes) + " bytes, " + stage + ", after " + std::to_string(seconds) + " s";
}

Progress::Progress(std::FILE* terminal, uint64_t total_rows, Clock::time_point (*now)())
    : terminal_(terminal != nullptr && isatty(fileno(terminal)) == 1 ? terminal : nullptr),
      total_(total_rows),
      now_(now) {}

void Progress::begin_stage(const char* name, size_t size_bytes, uint64_t operations) {
  if (!shown()) return;
  const Clock::time_point now = now_();
  if (stage_bytes_ > 0) seconds_per_byte_ = seconds_between(stage_start_, now) / stage_bytes_;
  stage_ = name;
  size_bytes_ = size_bytes;
  stage_bytes_ = static_cast<double>(size_bytes) * static_cast<double>(operations);
  stage_start_ = now;
  if (seconds_between(start_, now) + stage_bytes_ * seconds_per_byte_ >= kLongRunSeconds) show(now);
}

void Progress::tick() {
  if (!shown()) return;
  const Clock::time_point now = now_();
  if (now - shown_at_ >= kTick && seconds_between(start_, now) >= kLongRunSeconds) show(now);
}

void Progress::show(Clock::time_point now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
  visible_ = true;
  shown_at_ = now;
  std::fprintf(terminal_, "\r\033[K%s", progress_text(rows_done_ + 1, total_, size_bytes_, stage_, seconds).c_str());
  std::fflush(terminal_);
}

void Progress::end_row() {
  clear();
  ++rows_done_;
}

void Progress::clear() {
  if (!visible_) return;
  std::fputs("\r\033[K", terminal_);
  std::fflush(terminal_);
  visible_ = false;
}

}  // namespace trestle::perf
