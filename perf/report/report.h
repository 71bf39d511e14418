// The text that the printing rank adds to the table: beginning, remarks, ranks, footer, and predicted beside measured
// times.
//
// Every thread calls the functions that take Ranks (they gather); only the printing one prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/backend/backend.h"
#include "perf/driver/collective.h"
#include "perf/driver/ranks.h"
#include "perf/driver/sweep.h"
#include "perf/report/json_report.h"

namespace trestle::perf {

// Prints a line and flushes it, so that a long run shows every row at once.
void print_line(const std::string& text);

// The library's own count of the memory of one communicator, the largest.
uint64_t most_memory(const std::vector<trestleComm_t>& comms);
// Prints settings, the cost of the communicators, and ranks. color: of this process, if the job is split. creation: of
// this thread's communicators, before their first operation. report may be null.
void report_beginning(Ranks& ranks, const Options& options, const std::string& program, int color,
                      const Creation& creation, JsonReport* report);
void report_predictions(Ranks& ranks, Backend& backend, const Collective& collective, const Options& options,
                        size_t buffer_bytes);
// Prints how the rails fared, if -X asks for it. ranks: those that have measured. report may be null.
void report_rails(Ranks& ranks, const Options& options, JsonReport* report);
// Prints the footer. failed_checks: of all ranks. scores: of the backends, Trestle's first. report may be null.
void report_end(Ranks& ranks, const std::string& program, uint64_t failed_checks, const std::vector<Score>& scores,
                std::optional<double> min_busbw, JsonReport* report);

}  // namespace trestle::perf
