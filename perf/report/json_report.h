// The report of -J: settings, ranks, one record per row, and how the run ended. It has the form of nccl-tests' version
// 3, with these differences: real truth values, null for what was not measured, and of the environment only the
// variables that this program and the library read.
//
// Owned by the process that prints. Rows come from its printing thread. Any thread may call finish(); only the first
// call counts. The file is complete from the start: a run that does not reach its end leaves the rows so far, with null
// for values that are only known at the end.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "perf/driver/options.h"
#include "perf/report/json_file.h"
#include "perf/report/rails.h"
#include "perf/report/table.h"

namespace trestle::perf {

class JsonReport {
 public:
  // argv as main received it.
  JsonReport(int argc, char** argv, std::string program, JsonFile file);

  // One per rank, in rank order.
  struct Device {
    int rank, group, process_id, device;
    std::string host;
    std::string bus;   // of the GPU, "0000:3b:00"; zeros: host memory
    std::string info;  // the GPU's name, or "host memory"
  };
  void begin(const Options& options, const std::vector<Device>& devices, const Creation& creation);
  // in_place may be null: the collective has none.
  void row(const RowHead& head, const Half& out_of_place, const Half* in_place, const Options& options);

  // How the rails fared; "rails" of the finished report.
  void rails(const std::vector<RailRow>& rows);

  // A backend that Trestle was compared with.
  struct Compared {
    std::string backend;
    double mean_busbw = 0;
    std::optional<double> time_ratio;  // of its times to Trestle's
  };
  struct End {
    uint64_t failed_checks = 0;
    double mean_busbw = 0;
    std::optional<double> min_busbw;
    std::string error;  // "": no error
    std::vector<Compared> compared = {};
  };
  // To be called last. Returns "" or the error message, also that of an earlier write.
  std::string finish(const End& end);

 private:
  void append(const std::string& text, const std::string& tail);

  std::mutex mutex_;
  const std::string program_;
  JsonFile file_;
  std::string rails_;    // as JSON; "": not asked for
  std::string problem_;  // of the first write that failed: nothing follows it
  bool begun_ = false;
  bool has_rows_ = false;
  bool finished_ = false;
};

}  // namespace trestle::perf
