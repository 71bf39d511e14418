// What the printing rank says around the table: beginning, remarks, ranks, footer, and predicted beside measured times.
//
// Functions that take Ranks are called by every thread (they gather); only the printing one prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "perf/driver/collective.h"
#include "perf/driver/ranks.h"
#include "perf/report/json_report.h"

namespace trestle::perf {

// Prints a line and flushes it: whoever watches a long run sees every row at once.
void print_line(const std::string& text);

// Settings, what the communicators cost, and ranks. Before anything else runs on them. color: of this process, where
// the job is split; init_seconds: that it took to make the communicators of this thread. report may be null.
void report_beginning(Ranks& ranks, const Options& options, const std::string& program, int color, double init_seconds,
                      JsonReport* report);
void report_predictions(Ranks& ranks, const Collective& collective, const Options& options, size_t buffer_bytes);
// The footer. failed_checks: of all ranks. report may be null.
void report_end(Ranks& ranks, const std::string& program, uint64_t failed_checks, double mean_busbw,
                std::optional<double> min_busbw, JsonReport* report);

}  // namespace trestle::perf
