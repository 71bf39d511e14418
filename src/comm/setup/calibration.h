// Measured link speeds of a communicator: the file that they come from, how all ranks get the same ones, the
// measurement if there is no file (TRESTLE_CALIBRATE=full), and what shows that they are wrong.
//
// Used while a communicator is created, on the creating thread, and when it ends. Only rank 0 reads and removes files.
// Its result travels with the exchange that compares the topologies, so that ranks cannot differ.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/setup/settings.h"
#include "engine/run/statistics.h"
#include "rendezvous/rank_info.h"
#include "topology/calibration_file.h"
#include "topology/topology.h"

namespace trestle {

struct CalibrationPlace {
  bool wanted = false;  // there is something to fill in, and calibration is not off
  uint64_t key = 0;
  std::string path;          // "": there is no place for files
  bool chosen = false;       // the user has named the folder; else it follows from XDG_CACHE_HOME or HOME
  CalibrationOrigin origin;  // of a calibration that this rank would make
};
// Equal on all ranks, except the path and the origin.
CalibrationPlace calibration_place(const CommunicatorSettings& settings, const Topology& topology,
                                   const std::vector<RankInfo>& infos);

// What a communicator uses of a file; of rank 0.
struct UsedCalibration {
  std::string path;
  int64_t made_s = 0;
  Topology measured;
};

// The stored calibration, if it counts for these ranks. The log has at INFO, once, that it is used or why not; an
// unusable file is ignored, with one warning. Without access to a folder that the user has not named there is no file.
std::optional<UsedCalibration> kept_calibration(const CalibrationPlace& place, const Topology& topology);

// Stores a new calibration for later communicators. A failure only logs a warning.
std::optional<UsedCalibration> keep_calibration(const CalibrationPlace& place, const Topology& measured);

// A bandwidth is far off if it is more than so many times what the rails of its dimension are known to carry, or if
// data came more than so many times as fast. Measurements on busy hosts differ by up to twice.
inline constexpr uint64_t kFarOff = 4;
// The first bandwidth of a calibration that is too high for the ranks' rails, in a sentence; "": none. `known`: the
// dimensions that the ranks ask for, with the rates of their rails (use_known_rates()). Equal on all ranks.
std::string faster_than_rails(const Topology& measured, const Topology& asked, const Topology& known);
// The warning at rank 0 that a calibration does not count for that sentence; once.
void warn_of(const UsedCalibration& unused, const std::string& wrong);
// Forgets the calibration, with a warning where this call has removed it, if one of its bandwidths is too low for the
// data that has come to this rank. Only that is certain: data may have been slower for many reasons. Messages up to
// `eager_bytes` may have come before this rank wanted them, so as much of each does not count. (Below 66 Mbit/s all
// segments are so small.)
void forget_if_slower_than_data(const UsedCalibration& used, const std::array<DimensionCounts, kMaxDimensions>& came,
                                uint64_t eager_bytes);

}  // namespace trestle
