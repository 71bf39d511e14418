#include "perf/report/table.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "perf/driver/options.h"

namespace trestle::perf {
namespace {

constexpr int kTimeWidth = 7;
constexpr int kBandwidthWidth = 6;
constexpr int kWrongWidth = 6;

}  // namespace

std::string format_number(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    const std::string fixed = text("%*.*f", width, decimals, value);
    if (static_cast<int>(fixed.size()) <= width) return fixed;
  }
  return text("%*.*e", width, width >= kTimeWidth ? 1 : 0, value);
}

std::string row_head(const RowHead& head) {
  return text("%12zu  %12zu  %8s  %6s  %6d", head.size_bytes, head.count, head.type, head.op, head.root);
}

std::string row_half(const Half* half, const Columns& columns) {
  const int more = (columns.tails ? 4 : 0) + (columns.calls ? 3 : 0);
  if (half == nullptr) {
    std::string line = text("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
    for (int field = 0; field < more; ++field) line += text("  %7s", "N/A");
    return line;
  }
  std::string line = "  " + format_number(half->time_us, kTimeWidth) + "  " +
                     format_number(half->algbw, kBandwidthWidth) + "  " + format_number(half->busbw, kBandwidthWidth);
  line +=
      half->wrong ? text("  %*g", kWrongWidth, static_cast<double>(*half->wrong)) : text("  %*s", kWrongWidth, "N/A");
  const auto add = [&line](double value) { line += "  " + format_number(value, kTimeWidth); };
  if (columns.tails) {
    const Tails of = half->tails.value_or(Tails{});
    for (const double value : {of.min, of.max, of.p99, of.cv_percent}) add(value);
  }
  if (columns.calls) {
    const CallTimes of = half->calls.value_or(CallTimes{});
    for (const double value : {of.host_us, of.issue_us, of.launch_us}) add(value);
  }
  return line;
}

std::string row_end(const RowHead& head, const Columns& columns) {
  std::string line;
  if (columns.backends) line += text("  %8s", head.backend != nullptr ? head.backend : "");
  return columns.timestamps ? line + row_timestamp() : line;
}

Columns columns_of(const Options& options) {
  return {options.per_iteration, options.call_times, options.compare_nccl, options.report_timestamps};
}

std::string row_timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &local);
  return text("%21s", stamp);
}

std::vector<std::string> header_lines(bool cpu_time, const Columns& columns) {
  const char* time = cpu_time ? "cputime" : "time";
  // The group titles end where a half's four fields end, minus the blanks that centre them.
  const int between = 8 + (columns.tails ? 36 : 0) + (columns.calls ? 27 : 0);
  std::string titles =
      text("# %10s  %12s  %8s  %6s  %6s  %21s%*s  %21s", "", "", "", "", "", "out-of-place", between, "", "in-place");
  std::string names = text("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
  std::string units = text("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
  for (int half = 0; half < 2; ++half) {
    names += text("  %7s  %6s  %6s  %6s", time, "algbw", "busbw", "#wrong");
    units += text("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "");
    if (columns.tails) {
      names += text("  %7s  %7s  %7s  %7s", "i_min", "i_max", "i_p99", "i_cv%");
      units += text("  %7s  %7s  %7s  %7s", "(us)", "(us)", "(us)", "(%)");
    }
    if (columns.calls) {
      names += text("  %7s  %7s  %7s", "host", "issue", "launch");
      units += text("  %7s  %7s  %7s", "(us)", "(us)", "(us)");
    }
  }
  if (columns.backends) names += text("  %8s", "backend");
  if (columns.timestamps) names += text("%21s", "timestamp");
  return {titles, names, units};
}

std::string settings_line(const Options& options) {
  const bool multiplies = options.step_factor > 1;
  return text(
      "# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d iters: %d agg iters: %d "
      "validation: %d graph: %d unalign: %d",
      options.threads, options.ranks_per_thread, options.min_bytes, options.max_bytes,
      multiplies ? static_cast<size_t>(options.step_factor) : options.step_bytes, multiplies ? "factor" : "bytes",
      options.warmup_iters, options.iters, options.agg_iters, options.checks, options.graph_launches, options.unalign);
}

std::string creation_line(const Creation& creation) {
  return text("# Communicator: made in %.2f ms (slowest rank), idle it holds %" PRIu64 " bytes (largest rank)",
              creation.seconds * 1e3, creation.memory_bytes);
}

std::string wrong_line(uint64_t failed_checks) {
  return text("# %-20s : %" PRIu64 " %s", "Out of bounds values", failed_checks, failed_checks == 0 ? "OK" : "FAILED");
}

bool busbw_fails(double mean_busbw, std::optional<double> min_busbw) {
  return min_busbw && !(mean_busbw >= 0.9 * *min_busbw);
}

std::string compared_line(const std::string& backend, double mean_busbw, std::optional<double> ratio) {
  // Not the words of Trestle's own line, which scripts look for.
  std::string line = text("# %-20s : %g", ("Avg busbw of " + backend).c_str(), mean_busbw);
  if (ratio) line += text(", time %.3f of Trestle's (geometric mean)", *ratio);
  return line;
}

std::string busbw_line(double mean_busbw, std::optional<double> min_busbw) {
  std::string line = text("# %-20s : %g", "Avg bus bandwidth", mean_busbw);
  if (min_busbw) line += busbw_fails(mean_busbw, min_busbw) ? " FAILED" : " OK";
  return line;
}

}  // namespace trestle::perf
