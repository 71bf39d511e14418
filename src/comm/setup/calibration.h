// Measured link speeds of a communicator: which file they come from, how all ranks get the same ones, and measuring
// where there is no file (TRESTLE_CALIBRATE=full).
//
// Used while a communicator is made, by the thread that makes it. Only rank 0 looks at files; what it read travels with
// the exchange that compares the topologies, so that ranks cannot differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/setup/settings.h"
#include "rendezvous/rank_info.h"
#include "topology/topology.h"

namespace trestle {

struct CalibrationPlace {
  bool wanted = false;  // there is something to fill in, and calibrations are not switched off
  uint64_t key = 0;
  std::string path;  // "" : nowhere to look
};
// The same on all ranks but for the path.
CalibrationPlace calibration_place(const CommunicatorSettings& settings, const Topology& topology,
                                   const std::vector<RankInfo>& infos);

// The topology file of a calibration that was kept, or "". A file that is no use is ignored, with one warning.
std::string kept_calibration(const CalibrationPlace& place, const Topology& topology);
// What kept_calibration of rank 0 gave, on any rank.
Status apply_calibration(const std::string& json, Topology& topology);

// Keeps a fresh one, for the communicators to come. Failing is only warned of.
void keep_calibration(const CalibrationPlace& place, const Topology& measured);

}  // namespace trestle
