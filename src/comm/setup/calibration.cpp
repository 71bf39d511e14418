#include "comm/setup/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/fork.h"
#include "base/log.h"
#include "trestle/trestle.h"

namespace trestle {
namespace {

constexpr const char* kHowToRenew =
    "TRESTLE_CALIBRATE=full or `trestle calibrate` measures anew, `trestle calibrate --forget` removes what is kept";

// Every communicator of a process may use one file. By what is said, without the figures that change.
constinit PerProcess<OncePerKey> said_once;

void warn_once(const std::string& text, const std::string& key) {
  if (said_once.get().first(key)) LOG(kWarn, kInit, "%s", text.c_str());
}
void warn_once(const std::string& text) {
  warn_once(text, text);
}

// Jobs run under accounts whose HOME is another's, such as root's.
bool is_out_of_reach(const CalibrationPlace& place) {
  if (place.chosen || ::access(place.path.c_str(), R_OK) == 0 || errno != EACCES) return false;
  if (log_enabled(LogLevel::kInfo, Subsystem::kInit) && said_once.get().first(place.path + " is out of reach"))
    LOG(kInfo, kInit, "no calibration is used: %s: %s", place.path.c_str(), std::strerror(EACCES));
  return true;
}

std::string gbps(double mbps) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f Gb/s", mbps / 1000);
  return text;
}

std::string named(const UsedCalibration& calibration) {
  return "the calibration " + calibration.path + " of " + date_text(calibration.made_s);
}

std::string contradiction(const Topology& measured, size_t d, const std::string& fact) {
  const Dimension& dimension = measured.dimensions[d];
  return gbps(static_cast<double>(dimension.bandwidth_mbps)) + " in dimension " + std::to_string(d + 1) + " (" +
         to_string(dimension.transport) + "), but " + fact;
}

// Bits per microsecond that came while the dimension was in use, at least; 0: too few to tell.
double least_mbps(const DimensionCounts& came, uint64_t eager_bytes) {
  constexpr uint64_t kEnoughBytes = uint64_t{64} << 20;
  const uint64_t early = came.messages_received * eager_bytes;
  if (came.busy_ns == 0 || came.bytes_received < early + kEnoughBytes) return 0;
  return static_cast<double>(came.bytes_received - early) * 8000 / static_cast<double>(came.busy_ns);
}

}  // namespace

CalibrationPlace calibration_place(const CommunicatorSettings& settings, const Topology& topology,
                                   const std::vector<RankInfo>& infos) {
  CalibrationPlace place;
  place.wanted = settings.config.calibrate != "off" && infos.size() > 1 && has_nominal(topology);
  if (!place.wanted) return place;
  std::vector<RankPlace> places;
  for (const RankInfo& info : infos) places.push_back(info.place);
  place.key = calibration_key(topology, places);
  place.origin = calibration_origin(places, TRESTLE_VERSION_CODE);
  const std::string& folder = settings.config.calibration_folder;
  if (!folder.empty()) place.path = calibration_path(folder, place.key);
  const auto value =
      std::ranges::find(settings.config.values, std::string_view("TRESTLE_CALIBRATION_DIR"), &Config::Value::name);
  place.chosen = value != settings.config.values.end() && !value->text.empty();
  return place;
}

std::optional<UsedCalibration> kept_calibration(const CalibrationPlace& place, const Topology& topology) {
  if (!place.wanted || place.path.empty() || is_out_of_reach(place)) return std::nullopt;
  auto kept = read_calibration(place.path, place.key, topology, place.origin);
  if (!kept.ok()) {
    warn_once("calibration ignored: " + kept.error().message);
    return std::nullopt;
  }
  if (!kept.value()) return std::nullopt;
  KeptCalibration& found = *kept.value();
  const std::string made = date_text(found.origin.made_s);
  const bool first = log_enabled(LogLevel::kInfo, Subsystem::kInit) && said_once.get().first(place.path + made);
  if (!found.unfit.empty()) {
    if (first) LOG(kInfo, kInit, "the calibration %s is not used: %s", place.path.c_str(), found.unfit.c_str());
    return std::nullopt;
  }
  if (first) LOG(kInfo, kInit, "link speeds as measured at %s: %s", made.c_str(), place.path.c_str());
  return UsedCalibration{place.path, found.origin.made_s, std::move(found.measured)};
}

std::optional<UsedCalibration> keep_calibration(const CalibrationPlace& place, const Topology& measured) {
  if (place.path.empty()) {
    warn_once("the calibration is not kept: there is neither TRESTLE_CALIBRATION_DIR nor HOME");
    return std::nullopt;
  }
  const Status written = write_calibration(place.path, place.key, place.origin, measured);
  if (!written.ok()) {
    warn_once("the calibration is not kept: " + written.error().message, place.path + " is not kept");
    return std::nullopt;
  }
  LOG(kInfo, kInit,
      "calibration written to %s: schedules of communicators made from here on may differ from earlier "
      "ones, so that sums may round differently",
      place.path.c_str());
  return UsedCalibration{place.path, place.origin.made_s, measured};
}

std::string faster_than_rails(const Topology& measured, const Topology& asked, const Topology& known) {
  for (size_t d = 0; d < std::min(asked.dimensions.size(), measured.dimensions.size()); ++d) {
    const uint64_t carried = asked.dimensions[d].bandwidth_mbps == 0 ? known.dimensions[d].bandwidth_mbps : 0;
    if (carried != 0 && measured.dimensions[d].bandwidth_mbps > kFarOff * carried)
      return contradiction(measured, d, "its rails carry " + gbps(static_cast<double>(carried)));
  }
  return "";
}

void warn_of(const UsedCalibration& unused, const std::string& wrong) {
  warn_once(named(unused) + " is not used: it has " + wrong + "; " + kHowToRenew);
}

void forget_if_slower_than_data(const UsedCalibration& used, const std::array<DimensionCounts, kMaxDimensions>& came,
                                uint64_t eager_bytes) {
  for (size_t d = 0; d < used.measured.dimensions.size(); ++d) {
    const double least = least_mbps(came[d], eager_bytes);
    if (least <= static_cast<double>(kFarOff * used.measured.dimensions[d].bandwidth_mbps)) continue;
    const std::string wrong = contradiction(used.measured, d, "data came there at " + gbps(least) + " or more");
    const Result<bool> forgotten = forget_calibration(used.path, used.made_s);
    if (forgotten.ok() && !forgotten.value()) return;
    const std::string kept = forgotten.ok() ? "" : " (" + forgotten.error().message + ")";
    warn_once(named(used) + " is dropped" + kept + ": it has " + wrong + "; " + kHowToRenew,
              named(used) + " is dropped");
    return;
  }
}

}  // namespace trestle
