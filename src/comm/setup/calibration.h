// Measured link speeds of a communicator: the file that they come from, how all ranks get the same ones, and the
// measurement if there is no file (TRESTLE_CALIBRATE=full).
//
// Used while a communicator is created, on the creating thread. Only rank 0 reads files. Its result travels with the
// exchange that compares the topologies, so that ranks cannot differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/setup/settings.h"
#include "rendezvous/rank_info.h"
#include "topology/topology.h"

namespace trestle {

struct CalibrationPlace {
  bool wanted = false;  // there is something to fill in, and calibration is not off
  uint64_t key = 0;
  std::string path;  // "": there is no place for files
};
// Equal on all ranks, except the path.
CalibrationPlace calibration_place(const CommunicatorSettings& settings, const Topology& topology,
                                   const std::vector<RankInfo>& infos);

// The topology file of a stored calibration, or "". An unusable file is ignored, with one warning.
std::string kept_calibration(const CalibrationPlace& place, const Topology& topology);
// Applies what kept_calibration() returned on rank 0; on any rank.
Status apply_calibration(const std::string& json, Topology& topology);

// Stores a new calibration for later communicators. A failure only logs a warning.
void keep_calibration(const CalibrationPlace& place, const Topology& measured);

}  // namespace trestle
