#include "comm/setup/calibration.h"

#include "base/log.h"
#include "topology/calibration_file.h"

namespace trestle {

CalibrationPlace calibration_place(const CommunicatorSettings& settings, const Topology& topology,
                                   const std::vector<RankInfo>& infos) {
  CalibrationPlace place;
  place.wanted = settings.config.calibrate != "off" && infos.size() > 1 && has_nominal(topology);
  if (!place.wanted) return place;
  std::vector<RankPlace> places;
  for (const RankInfo& info : infos) places.push_back(info.place);
  place.key = calibration_key(topology, places, infos[0].version);
  const std::string& folder = settings.config.calibration_folder;
  if (!folder.empty()) place.path = calibration_path(folder, place.key);
  return place;
}

std::string kept_calibration(const CalibrationPlace& place, const Topology& topology) {
  if (!place.wanted || place.path.empty()) return "";
  const auto kept = read_calibration(place.path, place.key, topology);
  if (!kept.ok()) {
    LOG(kWarn, kInit, "calibration ignored: %s", kept.error().message.c_str());
    return "";
  }
  if (!kept.value()) return "";
  LOG(kInfo, kInit, "link speeds as measured before: %s", place.path.c_str());
  return to_json(*kept.value());
}

Status apply_calibration(const std::string& json, Topology& topology) {
  if (json.empty()) return {};
  fill_nominal(topology, TRY(parse_topology(json, "rank 0's calibration")));
  topology.reason += "; link speeds as measured";
  return {};
}

void keep_calibration(const CalibrationPlace& place, const Topology& measured) {
  if (place.path.empty()) {
    LOG(kWarn, kInit, "the calibration is not kept: there is neither TRESTLE_CALIBRATION_DIR nor HOME");
    return;
  }
  const Status written = write_calibration(place.path, place.key, measured);
  if (!written.ok()) {
    LOG(kWarn, kInit, "the calibration is not kept: %s", written.error().message.c_str());
    return;
  }
  LOG(kInfo, kInit,
      "calibration written to %s: schedules of communicators made from here on may differ from earlier "
      "ones, so that sums may round differently",
      place.path.c_str());
}

}  // namespace trestle
