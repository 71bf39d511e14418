// What -J writes: settings, ranks, one record per row, and how it ended, in the form of nccl-tests' version 3, but with
// real truth values, null for what was not measured, and of the environment only the variables that this program and
// the library read.
//
// Owned by the process that prints. Rows come from its printing thread, finish() from any thread, and only the first
// counts. The file is whole from the start: a run that does not come to its end, or has none, leaves the rows so far,
// with null for what only the end tells.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "perf/driver/options.h"
#include "perf/report/json_file.h"
#include "perf/report/table.h"

namespace trestle::perf {

class JsonReport {
 public:
  // argv as main got it.
  JsonReport(int argc, char** argv, std::string program, JsonFile file);

  // One per rank, in rank order.
  struct Device {
    int rank, group, process_id, device;
    std::string host;
  };
  void begin(const Options& options, const std::vector<Device>& devices, const Creation& creation);
  // in_place may be null: the collective has none.
  void row(const RowHead& head, const Half& out_of_place, const Half* in_place, const Options& options);

  struct End {
    uint64_t failed_checks = 0;
    double mean_busbw = 0;
    std::optional<double> min_busbw;
    std::string error;  // "": none
  };
  // The last word. "" or the sentence of what is wrong, also of what was written before.
  std::string finish(const End& end);

 private:
  void append(const std::string& text, const std::string& tail);

  std::mutex mutex_;
  const std::string program_;
  JsonFile file_;
  std::string problem_;  // of the first thing that could not be written: nothing follows it
  bool begun_ = false;
  bool has_rows_ = false;
  bool finished_ = false;
};

}  // namespace trestle::perf
