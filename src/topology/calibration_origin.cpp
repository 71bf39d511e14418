// When, where and by what a calibration was made, and whether that is still good.
#include <sys/utsname.h>

#include <algorithm>
#include <ctime>

#include "base/hash.h"
#include "topology/calibration_file.h"

namespace trestle {
namespace {

constexpr const char* kDate = "%Y-%m-%dT%H:%M:%SZ";
constexpr int64_t kDay_s = 86'400;
constexpr size_t kMostHosts = 16;

// A line of the file holds it.
std::string in_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c <= ' ' || c > '~'; }, '?');
  return text;
}

std::string host_names(const std::vector<RankPlace>& places) {
  std::vector<std::string> hosts;
  std::string text;
  for (const RankPlace& place : places) {
    if (std::ranges::find(hosts, place.host_id) != hosts.end()) continue;
    hosts.push_back(place.host_id);
    if (hosts.size() <= kMostHosts) text += (text.empty() ? "" : " ") + in_line(place.hostname);
  }
  return hosts.size() <= kMostHosts ? text : text + " and " + std::to_string(hosts.size() - kMostHosts) + " more";
}

std::string kernel_release() {
  utsname name{};
  return in_line(::uname(&name) == 0 ? name.release : "unknown");
}

}  // namespace

CalibrationOrigin calibration_origin(const std::vector<RankPlace>& places, uint32_t version) {
  CalibrationOrigin origin;
  origin.made_s = static_cast<int64_t>(std::time(nullptr));
  origin.hosts = host_names(places);
  Hasher hasher;
  for (const RankPlace& place : places) hasher.string(place.host_id);
  origin.host_ids = hasher.digest();
  origin.kernel = kernel_release();
  origin.version =
      std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  return origin;
}

std::string why_unfit(const CalibrationOrigin& kept, const CalibrationOrigin& now) {
  if (kept.version != now.version) return "it is of version " + kept.version + ", and this one is " + now.version;
  if (kept.host_ids != now.host_ids) return "its hosts have been restarted since, or others have their names";
  if (kept.kernel != now.kernel) return "it was made under kernel " + kept.kernel + ", and this one is " + now.kernel;
  if (kept.made_s > now.made_s + kDay_s) return "it is dated " + date_text(kept.made_s) + ", which is still to come";
  const int64_t days = (now.made_s - kept.made_s) / kDay_s;
  if (days < kCalibrationDays) return "";
  return "it is " + std::to_string(days) + " days old, and counts for " + std::to_string(kCalibrationDays);
}

std::string date_text(int64_t time_s) {
  const auto time = static_cast<std::time_t>(time_s);
  struct tm parts {};
  char text[64] = "";
  if (gmtime_r(&time, &parts) == nullptr || std::strftime(text, sizeof text, kDate, &parts) == 0) return "unknown";
  return text;
}

std::optional<int64_t> time_of_date(const std::string& text) {
  struct tm parts {};
  const char* end = strptime(text.c_str(), kDate, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const auto time_s = static_cast<int64_t>(timegm(&parts));
  if (time_s <= 0 || date_text(time_s) != text) return std::nullopt;
  return time_s;
}

}  // namespace trestle
