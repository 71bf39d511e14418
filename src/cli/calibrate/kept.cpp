// `trestle calibrate --list` and `--forget`.
#include <cstdio>
#include <ctime>

#include "cli/calibrate/calibrate.h"
#include "topology/calibration_file.h"

namespace trestle {
namespace {

constexpr int64_t kDay_s = 86'400;

Result<std::vector<std::string>> kept(const Config& config) {
  if (!config.calibration_folder.empty()) return calibrations_in(config.calibration_folder);
  return Error{Code::kInvalidUsage, "calibrate: there is no folder of calibrations; set TRESTLE_CALIBRATION_DIR"};
}

std::string speeds(const Topology& measured) {
  std::string text;
  for (size_t d = 0; d < measured.dimensions.size(); ++d) {
    const Dimension& dimension = measured.dimensions[d];
    char line[160];
    std::snprintf(line, sizeof line, "  dimension %zu: %d ranks over %s, %.2f Gb/s, %.1f us\n", d + 1, dimension.size,
                  to_string(dimension.transport), static_cast<double>(dimension.bandwidth_mbps) / 1000,
                  static_cast<double>(dimension.latency_ns) / 1000);
    text += line;
  }
  return text;
}

std::string description(const std::string& path) {
  const Result<KeptCalibration> read = read_any_calibration(path);
  if (!read.ok()) return read.error().message + "; it is never used\n";
  const CalibrationOrigin& origin = read.value().origin;
  const int64_t until_s = origin.made_s + kCalibrationDays * kDay_s;
  const bool over = until_s <= static_cast<int64_t>(std::time(nullptr));
  return path + "\n  made " + date_text(origin.made_s) + (over ? ", expired " : ", expires ") + date_text(until_s) +
         "\n  hosts: " + origin.hosts + "; kernel " + origin.kernel + "; Trestle " + origin.version + "\n" +
         speeds(read.value().measured);
}

Result<std::string> forget(const std::string& path) {
  if (!TRY(is_calibration(path))) return "left, as it is no calibration: " + path;
  return (TRY(forget_calibration(path, 0)) ? "forgotten: " : "gone already: ") + path;
}

}  // namespace

Result<std::string> list_calibrations(const Config& config) {
  std::string text;
  for (const std::string& path : TRY(kept(config))) text += description(path);
  return text.empty() ? "no calibration is kept in " + config.calibration_folder + "\n" : text;
}

Result<std::string> forget_calibrations(const Config& config) {
  std::string text;
  std::string errors;
  for (const std::string& path : TRY(kept(config))) {
    const Result<std::string> said = forget(path);
    (said.ok() ? text : errors) += (said.ok() ? said.value() : said.error().message) + "\n";
  }
  if (!errors.empty()) return Error{Code::kSystemError, "calibrate: some are not removed\n" + text + errors};
  return text.empty() ? "no calibration is kept in " + config.calibration_folder + "\n" : text;
}

}  // namespace trestle
