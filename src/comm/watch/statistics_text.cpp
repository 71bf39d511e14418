#include "comm/watch/statistics_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace trestle {

namespace {

std::string rounded(double value, const char* unit) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.*f %s", value < 9.95 ? 1 : 0, value, unit);
  return text.data();
}

std::string bytes(uint64_t number) {
  static constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (number < 1024) return std::to_string(number) + " B";
  auto value = static_cast<double>(number);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return rounded(value, kUnits[unit]);
}

std::string time(uint64_t ns) {
  if (ns >= 1'000'000'000) return rounded(static_cast<double>(ns) / 1e9, "s");
  if (ns >= 1'000'000) return rounded(static_cast<double>(ns) / 1e6, "ms");
  return rounded(static_cast<double>(ns) / 1e3, "us");
}

}  // namespace

std::string to_text(const StatisticsReading& reading, const Topology& topology) {
  const CollectiveCounts total = reading.total();
  std::string text = std::to_string(total.started) + " operations";
  if (total.failed != 0) text += " (" + std::to_string(total.failed) + " failed)";
  text +=
      ", " + bytes(total.bytes.given) + " given, waited " + time(reading.waited_ns) + " of " + time(reading.elapsed_ns);
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    const DimensionCounts& counts = reading.dimensions[d];
    text += "; dimension " + std::to_string(d + 1) + ": " + bytes(counts.bytes_sent) + " sent, busy " +
            std::to_string(counts.busy_ns * 100 / std::max<uint64_t>(1, reading.elapsed_ns)) + " %";
  }
  return text;
}

std::vector<std::string> rail_texts(std::span<const RailReport> reports) {
  struct Rail {
    std::string name;
    uint64_t sent = 0;
    uint64_t losses = 0;
  };
  std::vector<Rail> rails;
  uint64_t all = 0;
  for (const RailReport& report : reports) {
    if (report.rails < 2) continue;
    const auto known = std::find_if(rails.begin(), rails.end(), [&](const Rail& r) { return r.name == report.name; });
    Rail& rail = known != rails.end() ? *known : rails.emplace_back(Rail{report.name});
    rail.sent += report.sent_bytes;
    rail.losses += report.losses;
    all += report.sent_bytes;
  }
  std::vector<std::string> texts;
  for (const Rail& rail : rails) {
    const double percent = 100.0 * static_cast<double>(rail.sent) / static_cast<double>(std::max<uint64_t>(1, all));
    texts.push_back("rail " + rail.name + ": " + bytes(rail.sent) + " sent, " + std::to_string(std::lround(percent)) +
                    " %, " + std::to_string(rail.losses) + (rail.losses == 1 ? " connection" : " connections") +
                    " lost");
  }
  return texts;
}

}  // namespace trestle
