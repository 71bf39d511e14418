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

TEST(PerfTable, RowsHaveTheColumnsOfNcclTests) {
  Half half;
  half.time_us = 41.2;
  half.algbw = 25.45;
  half.busbw = 44.54;
  half.wrong = 0;
  EXPECT_EQ(row_head({1048576, 262144, "float", "sum", -1}) + row_half(&half, {}),
            "     1048576        262144     float     sum      -1    41.20   25.45   44.54       0");
  half.wrong = 1234567;
  EXPECT_EQ(row_half(&half, {}), "    41.20   25.45   44.54  1.23457e+06");
  half.wrong.reset();
  EXPECT_EQ(row_half(&half, {}), "    41.20   25.45   44.54     N/A");
  EXPECT_EQ(row_half(nullptr, {}).size(), row_half(&half, {}).size());
}

TEST(PerfTable, TellsWhatCommunicatorsCost) {
  EXPECT_EQ(creation_line({.seconds = 0.0123456, .memory_bytes = 262144}),
            "# Communicator: made in 12.35 ms (slowest rank), idle it holds 262144 bytes (largest rank)");
}

TEST(PerfTable, HeaderStandsOverTheColumns) {
  const std::vector<std::string> lines = header_lines(false, {});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(
      lines[0],
      "#                                                              out-of-place                       in-place");
  EXPECT_EQ(
      lines[1],
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
      "#wrong");
  EXPECT_EQ(lines[2].substr(0, 102),
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)");
  EXPECT_NE(header_lines(true, {})[1].find("cputime"), std::string::npos);
  EXPECT_NE(header_lines(false, {.timestamps = true})[1].find("timestamp"), std::string::npos);
  EXPECT_EQ(row_timestamp().size(), 21u);
}

TEST(PerfTable, TailsAddFourColumnsPerHalf) {
  Half half;
  half.time_us = 41.2;
  half.tails = Tails{.min = 1, .max = 12345678, .p99 = 3, .cv_percent = 4.5};
  const std::string line = row_half(&half, {.tails = true});
  EXPECT_EQ(line, row_half(&half, {}) + "     1.00  1.2e+07     3.00     4.50");
  EXPECT_EQ(row_half(nullptr, {.tails = true}).size(), line.size());
  const std::vector<std::string> lines = header_lines(false, {.tails = true});
  EXPECT_NE(lines[1].find("#wrong    i_min    i_max    i_p99    i_cv%"), std::string::npos) << lines[1];
  EXPECT_EQ(lines[1].size(), lines[2].size());
  // The second half's title moves by the width of these columns.
  EXPECT_EQ(lines[0].find("in-place", 70) - header_lines(false, {})[0].find("in-place", 70), 36u);
}

TEST(PerfTable, CallTimesAddThreeColumnsPerHalf) {
  Half half;
  half.time_us = 41.2;
  half.calls = CallTimes{.host_us = 1.5, .issue_us = 0.5, .launch_us = 12345678};
  const Columns columns = {.calls = true};
  EXPECT_EQ(row_half(&half, columns), row_half(&half, {}) + "     1.50     0.50  1.2e+07");
  EXPECT_EQ(row_half(nullptr, columns), row_half(nullptr, {}) + "      N/A      N/A      N/A");
  const std::vector<std::string> lines = header_lines(false, columns);
  EXPECT_NE(lines[1].find("#wrong     host    issue   launch     time"), std::string::npos) << lines[1];
  EXPECT_EQ(lines[1].size(), lines[2].size());
  EXPECT_EQ(lines[0].find("in-place", 70) - header_lines(false, {})[0].find("in-place", 70), 27u);
}

TEST(PerfTable, BackendsAddAColumnBehindTheHalves) {
  RowHead head = {64, 16, "float", "sum", -1};
  EXPECT_EQ(row_end(head, {}), "");
  head.backend = "nccl";
  const Columns columns = {.backends = true};
  EXPECT_EQ(row_end(head, columns), "      nccl");
  EXPECT_EQ(row_end(head, {.backends = true, .timestamps = true}).size(), 31u);
  const std::string names = header_lines(false, columns)[1];
  EXPECT_EQ(names.substr(names.size() - 10), "   backend");
  Options options;
  EXPECT_FALSE(columns_of(options).backends);
  options.compare_nccl = true;
  EXPECT_TRUE(columns_of(options).backends);
}

TEST(PerfTable, Footer) {
  EXPECT_EQ(compared_line("nccl", 1.5, std::nullopt), "# Avg busbw of nccl    : 1.5");
  EXPECT_EQ(compared_line("nccl", 1.5, 0.5), "# Avg busbw of nccl    : 1.5, time 0.500 of Trestle's (geometric mean)");
  EXPECT_EQ(wrong_line(0), "# Out of bounds values : 0 OK");
  EXPECT_EQ(wrong_line(3), "# Out of bounds values : 3 FAILED");
  EXPECT_EQ(busbw_line(1.5, std::nullopt), "# Avg bus bandwidth    : 1.5");
  EXPECT_EQ(busbw_line(0.95, 1.0), "# Avg bus bandwidth    : 0.95 OK");
  EXPECT_EQ(busbw_line(0.85, 1.0), "# Avg bus bandwidth    : 0.85 FAILED");
  EXPECT_FALSE(busbw_fails(0.1, std::nullopt));
}

TEST(PerfTable, SettingsLine) {
  Options options;
  options.step_factor = 2;
  EXPECT_EQ(
      settings_line(options),
      "# nThread 1 nGpus 1 minBytes 33554432 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
      "validation: 1 graph: 0 unalign: 0");
  options.step_factor = 1;
  EXPECT_NE(settings_line(options).find("step: 1048576(bytes)"), std::string::npos);
}

}  // namespace
}  // namespace trestle::perf
