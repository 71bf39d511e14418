#include "perf/driver/progress.h"

#include <cstdio>

namespace trestle::perf {
namespace {

constexpr int kLongRunSeconds = 2;  // shorter runs need no comfort

}  // namespace

std::string progress_text(uint64_t row, uint64_t total, size_t size_bytes, int64_t seconds) {
  std::string text = "row " + std::to_string(row);
  if (total > 0) text += " of " + std::to_string(total);
  return text + ", " + std::to_string(size_bytes) + " bytes, after " + std::to_string(seconds) + " s";
}

void Progress::begin_row(size_t size_bytes) {
  ++row_;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start_).count();
  if (!shown_ || seconds < kLongRunSeconds) return;
  visible_ = true;
  std::fprintf(stderr, "\r\033[K%s", progress_text(row_, total_, size_bytes, seconds).c_str());
}

void Progress::clear() {
  if (visible_) std::fputs("\r\033[K", stderr);
  visible_ = false;
}

}  // namespace trestle::perf
