// The text of the results: nccl-tests' columns, so that scripts that read those can read these.
//
// Pure functions from values to text without the newline, any thread; the caller prints.
#pragma once

#include <trestle/trestle.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "perf/report/tails.h"

namespace trestle::perf {

struct Options;

// As printf would print it, at most 511 characters.
template <class... Args>
std::string text(const char* format, Args... args) {
  std::array<char, 512> line;
  const int length = std::snprintf(line.data(), line.size(), format, args...);
  return std::string(line.data(), std::min<size_t>(static_cast<size_t>(std::max(length, 0)), line.size() - 1));
}

// Right-aligned in `width`: with two decimals if that fits, else one, else none, else in exponent form.
std::string format_number(double value, int width);

// Medians in microseconds.
struct CallTimes {
  double host_us = 0;    // of a call on idle streams, until it returns
  double issue_us = 0;   // of a call right after another one, until it returns
  double launch_us = 0;  // of a call on idle streams, until its result is there
};

// One measured half of a row. Times in microseconds, bandwidths in GB/s (decimal).
struct Half {
  double time_us = 0;
  double algbw = 0;
  double busbw = 0;
  std::optional<uint64_t> wrong;   // nullopt: not verified
  std::optional<Tails> tails;      // -I, microseconds
  std::optional<CallTimes> calls;  // --call-times
  std::vector<double> iterations_us;
  std::vector<std::vector<double>> process_iterations_us;  // only for -J
};

struct RowHead {
  size_t size_bytes;
  size_t count;
  const char* type;
  const char* op;                 // "none" if the collective has none
  int root;                       // -1 if the collective has none
  const char* backend = nullptr;  // null: only Trestle is measured, and the column is missing
};

// The columns that not every table has.
struct Columns {
  bool tails = false;  // -I: four per half
  bool calls = false;  // --call-times: three per half
  bool backends = false;
  bool timestamps = false;
};
Columns columns_of(const Options& options);

std::string row_head(const RowHead& head);
// nullptr: the collective has no such half (all its fields are N/A).
std::string row_half(const Half* half, const Columns& columns);
// What follows the two halves.
std::string row_end(const RowHead& head, const Columns& columns);
// "  YYYY-MM-DD HH:MM:SS", local time.
std::string row_timestamp();

// The three header lines above the rows.
std::vector<std::string> header_lines(bool cpu_time, const Columns& columns);
// The line of settings at the report's beginning.
std::string settings_line(const Options& options);

// The cost of communicators, before their first operation.
struct Creation {
  double seconds = 0;         // time of the slowest rank in the creating call, with waiting for others
  uint64_t memory_bytes = 0;  // trestleMemTotal of the rank that holds the most
};
std::string creation_line(const Creation& creation);

std::string wrong_line(uint64_t failed_checks);
// min_busbw: the expected mean (nullopt: not judged). A mean below 0.9 of it fails.
std::string busbw_line(double mean_busbw, std::optional<double> min_busbw);
// Of a backend that Trestle is compared with. ratio: of its times to Trestle's; nullopt: there are none.
std::string compared_line(const std::string& backend, double mean_busbw, std::optional<double> ratio);
bool busbw_fails(double mean_busbw, std::optional<double> min_busbw);

}  // namespace trestle::perf
