// The perf binaries' table: the widths and number formats that scripts for nccl-tests need.
#include <gtest/gtest.h>

#include "perf/driver/options.h"
#include "perf/report/table.h"

namespace trestle::perf {
namespace {

TEST(PerfTable, NumbersUseTheDecimalsThatFit) {
  const struct {
    double value;
    int width;
    const char* text;
  } kCases[] = {
      {0, 7, "   0.00"},       {41.2, 7, "  41.20"},     {9999.99, 7, "9999.99"}, {9999.996, 7, "10000.0"},
      {99999.9, 7, "99999.9"}, {99999.96, 7, " 100000"}, {9999999, 7, "9999999"}, {12345678, 7, "1.2e+07"},
      {0.004, 6, "  0.00"},    {25.45, 6, " 25.45"},     {999.99, 6, "999.99"},   {999.996, 6, "1000.0"},
      {9999.96, 6, " 10000"},  {999999, 6, "999999"},    {1234567, 6, " 1e+06"},
  };
  for (const auto& c : kCases) EXPECT_EQ(format_number(c.value, c.width), c.text);
}

// Scripts for nccl-tests read these lines.
TEST(PerfTable, LinesAreThoseOfNcclTests) {
  Half plain;
  plain.time_us = 41.2;
  plain.algbw = 25.45;
  plain.busbw = 44.54;
  plain.wrong = 0;
  Half unverified = plain, tails = plain, calls = plain;
  unverified.wrong.reset();
  tails.tails = Tails{.min = 1, .max = 12345678, .p99 = 3, .cv_percent = 4.5};
  calls.calls = CallTimes{.host_us = 1.5, .issue_us = 0.5, .launch_us = 12345678};
  const RowHead head = {1048576, 262144, "float", "sum", -1, "nccl"};
  Options by_factor;
  by_factor.step_factor = 2;
  const struct {
    std::string line;
    const char* expected;
  } kLines[] = {
      {header_lines(false, {})[0],
       "#                                                              out-of-place                       in-place"},
      {header_lines(false, {})[1],
       "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw "
       " "
       "#wrong"},
      {row_head(head), "     1048576        262144     float     sum      -1"},
      {row_half(&plain, {}), "    41.20   25.45   44.54       0"},
      {row_half(&unverified, {}), "    41.20   25.45   44.54     N/A"},
      {row_half(&tails, {.tails = true}), "    41.20   25.45   44.54       0     1.00  1.2e+07     3.00     4.50"},
      {row_half(&calls, {.calls = true}), "    41.20   25.45   44.54       0     1.50     0.50  1.2e+07"},
      {row_end(head, {.backends = true}), "      nccl"},
      {compared_line("nccl", 1.5, 0.5), "# Avg busbw of nccl    : 1.5, time 0.500 of Trestle's (geometric mean)"},
      {wrong_line(3), "# Out of bounds values : 3 FAILED"},
      {busbw_line(1.5, std::nullopt), "# Avg bus bandwidth    : 1.5"},
      {busbw_line(0.95, 1.0), "# Avg bus bandwidth    : 0.95 OK"},
      {busbw_line(0.85, 1.0), "# Avg bus bandwidth    : 0.85 FAILED"},
      {settings_line(by_factor),
       "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
       "validation: 1 graph: 0 unalign: 0"}};
  for (const auto& row : kLines) EXPECT_EQ(row.line, row.expected);
  // Names stand over the columns, also over those that not every table has and over halves without a value.
  for (const Columns& columns : {Columns{}, Columns{.tails = true}, Columns{.calls = true}, Columns{.backends = true},
                                 Columns{.tails = true, .backends = true, .timestamps = true}}) {
    const std::vector<std::string> lines = header_lines(false, columns);
    const std::string row = row_head(head) + row_half(&plain, columns) + row_half(nullptr, columns);
    EXPECT_EQ(lines[1].size(), (row + row_end(head, columns)).size());
    if (columns.backends || columns.timestamps) continue;  // these have no unit
    EXPECT_EQ(lines[1].size(), lines[2].size());
  }
}

}  // namespace
}  // namespace trestle::perf
