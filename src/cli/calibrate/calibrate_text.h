// The report of `trestle calibrate`: a table of assumed, measured and fitted numbers, and how well both predict. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "sched/calibrate/calibration.h"
#include "topology/topology.h"

namespace trestle {

struct TestAllReduce {
  uint64_t bytes = 0;
  int64_t predicted_ns = 0;
  int64_t measured_ns = 0;
};

struct CalibrationReport {
  Topology nominal;  // as configured, with nominal numbers written out
  Calibration measured;
  Topology fitted;
  TestAllReduce before;  // with the schedule that each topology gives
  TestAllReduce after;
};

std::string to_text(const CalibrationReport& report);

}  // namespace trestle
