// The progress line: during long runs it shows on a terminal which row is being measured, and how far it is. It is
// written to standard error and removed before a row is printed.
//
// Used by the thread that prints, and never while it times something. A line is written at the beginning of a stage, if
// it is due by then or will be before the stage ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace trestle::perf {

// "row 12 of 40, 65536 bytes, in place, after 83 s"; total 0: not known.
std::string progress_text(uint64_t row, uint64_t total, size_t size_bytes, const char* stage, int64_t seconds);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // terminal: used if it is one; null: show nothing. Outlives this. total_rows 0: not known. now: returns the time.
  Progress(std::FILE* terminal, uint64_t total_rows, Clock::time_point (*now)() = Clock::now);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // If the line is shown, a row must be printed as a whole: half a row and this line would share a line of the
  // terminal.
  bool shown() const { return terminal_ != nullptr; }
  // A stage of the row begins: `operations` operations on `size_bytes` bytes. Their time is estimated from earlier
  // stages; operations 0: no estimate.
  void begin_stage(const char* name, size_t size_bytes, uint64_t operations);
  // Called between operations of a stage, while nothing is timed. Updates the line once a second.
  void tick();
  // The row is done and can be printed.
  void end_row();

 private:
  void clear();
  void show(Clock::time_point now);

  std::FILE* const terminal_;
  const uint64_t total_;
  Clock::time_point (*const now_)();
  const Clock::time_point start_ = now_();
  uint64_t rows_done_ = 0;
  const char* stage_ = "";
  size_t size_bytes_ = 0;
  double stage_bytes_ = 0;          // of all its operations together
  double seconds_per_byte_ = 1e-9;  // of the last estimated stage; at first of a typical machine
  Clock::time_point stage_start_ = start_;
  Clock::time_point shown_at_ = start_;
  bool visible_ = false;
};

}  // namespace trestle::perf
