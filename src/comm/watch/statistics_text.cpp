#include "comm/watch/statistics_text.h"

#include <algorithm>
#include <array>
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

}  // namespace trestle
