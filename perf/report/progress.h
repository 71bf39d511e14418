// The progress line: on a terminal, for runs that take long, which row is being measured, and how far it is. It stands
// on standard error and is taken away before a row is printed.
//
// Used by the thread that prints, and never while it times something: a line is written at the beginning of a row's
// stages, when it is due by then or will be before the stage ends.
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
  // terminal: shown there if it is one; null: nowhere. Outlives this. total_rows 0: not known. now: what time it is.
  Progress(std::FILE* terminal, uint64_t total_rows, Clock::time_point (*now)() = Clock::now);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Where it is shown, a row is printed whole: half a row and this line would stand in one line of the terminal.
  bool shown() const { return terminal_ != nullptr; }
  // The row's stages begin: so many operations on so many bytes, whose time is guessed from the last ones; 0: no guess.
  void begin_stage(const char* name, size_t size_bytes, uint64_t operations);
  // Between operations of a stage, where nothing is timed: once a second the line says so.
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
  double stage_bytes_ = 0;          // of all its operations
  double seconds_per_byte_ = 1e-9;  // of the last guessed stage; before that, of some machine
  Clock::time_point stage_start_ = start_;
  Clock::time_point shown_at_ = start_;
  bool visible_ = false;
};

}  // namespace trestle::perf
