// The progress line: on a terminal, for runs that take long, which row is being measured. It stands on standard error
// and is taken away before a row is printed.
//
// Used by the thread that prints.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trestle::perf {

// "row 12 of 40, 65536 bytes, after 83 s"; total 0: not known.
std::string progress_text(uint64_t row, uint64_t total, size_t size_bytes, int64_t seconds);

class Progress {
 public:
  // shown: this thread prints and standard error is a terminal.
  Progress(bool shown, uint64_t total_rows) : shown_(shown), total_(total_rows) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Where it is shown, a row is printed whole: half a row and this line would stand in one line of the terminal.
  bool shown() const { return shown_; }
  void begin_row(size_t size_bytes);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  const bool shown_;
  const uint64_t total_;
  const Clock::time_point start_ = Clock::now();
  uint64_t row_ = 0;
  bool visible_ = false;
};

}  // namespace trestle::perf
