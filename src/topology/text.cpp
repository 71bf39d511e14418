// Formats a topology as a table for people and as a topology file.
#include <algorithm>
#include <array>

#include "topology/internal.h"
#include "topology/topology.h"

namespace trestle {

std::string gbps_text(uint64_t mbps) {
  std::string text = std::to_string(mbps / 1000);
  if (mbps % 1000 == 0) return text;
  std::string decimals = std::to_string(1000 + mbps % 1000).substr(1);
  while (decimals.ends_with('0')) decimals.pop_back();
  return text + "." + decimals;
}

namespace {

// Escapes names, because a Topology that was not read from a file may have any characters in them.
std::string quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result.append({'\\', c});
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result.append("\\u00").append({kHex[(c >> 4) & 15], kHex[c & 15]});
    } else {
      result += c;
    }
  }
  return result + "\"";
}

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;

Row row_of(size_t index, const Dimension& dimension) {
  const bool shares = !dimension.shared_resource.empty();
  const std::string interfaces = interfaces_text(dimension);
  return {std::to_string(index + 1),
          std::to_string(dimension.size),
          std::string(to_string(dimension.kind)) + (dimension.in_network_reduction ? " that reduces" : ""),
          to_string(dimension.transport),
          dimension.bandwidth_mbps == 0 ? "nominal" : gbps_text(dimension.bandwidth_mbps) + " Gb/s",
          dimension.latency_ns == kNominalLatency ? "nominal" : std::to_string(dimension.latency_ns) + " ns",
          interfaces.empty() ? "any" : interfaces,
          shares ? dimension.shared_resource + " " + std::to_string(dimension.shared_ps_per_byte) + " ps/B" : "-"};
}

std::string rails_json(const std::vector<DimensionRail>& rails) {
  std::string text;
  for (const DimensionRail& rail : rails) {
    text += (text.empty() ? "{\"interface\":" : ",{\"interface\":") + quoted(rail.interface);
    if (rail.bandwidth_mbps != 0) text += ",\"bandwidth_gbps\":" + gbps_text(rail.bandwidth_mbps);
    text += "}";
  }
  return "[" + text + "]";
}

// As the grammar of TRESTLE_RAILS has it.
std::string rate_text(uint64_t mbps) {
  return mbps % 1000 == 0 ? std::to_string(mbps / 1000) + "g" : std::to_string(mbps) + "m";
}

}  // namespace

std::string interfaces_text(const Dimension& dimension) {
  std::string text = dimension.interface;
  for (const DimensionRail& rail : dimension.rails) {
    text += (text.empty() ? "" : ",") + rail.interface;
    if (rail.bandwidth_mbps != 0) text += "@" + rate_text(rail.bandwidth_mbps);
  }
  return text;
}

std::string to_text(const Topology& topology) {
  std::vector<Row> rows = {{"dimension", "size", "kind", "transport", "bandwidth", "latency", "interface", "shared"}};
  for (size_t d = 0; d < topology.dimensions.size(); ++d) rows.push_back(row_of(d, topology.dimensions[d]));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t c = 0; c < kColumns; ++c) {
      text += row[c];
      if (c + 1 < kColumns) text.append(widths[c] - row[c].size() + 2, ' ');
    }
    text += "\n";
  }
  const int32_t ranks = topology.ranks();
  text += std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  if (!topology.reason.empty()) text += "; why: " + topology.reason;
  return text + "\n";
}

std::string to_json(const Topology& topology) {
  std::string text = "{\"dimensions\":[";
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    const Dimension& dimension = topology.dimensions[d];
    text += d == 0 ? "\n  " : ",\n  ";
    text += "{\"size\":" + std::to_string(dimension.size) + ",\"kind\":\"" + to_string(dimension.kind) + "\"";
    if (dimension.bandwidth_mbps != 0) text += ",\"bandwidth_gbps\":" + gbps_text(dimension.bandwidth_mbps);
    if (dimension.latency_ns != kNominalLatency) text += ",\"latency_ns\":" + std::to_string(dimension.latency_ns);
    if (dimension.transport != TransportKind::kAuto) {
      text += std::string(",\"transport\":\"") + to_string(dimension.transport) + "\"";
    }
    if (!dimension.interface.empty()) text += ",\"interface\":" + quoted(dimension.interface);
    if (!dimension.rails.empty()) text += ",\"rails\":" + rails_json(dimension.rails);
    if (!dimension.shared_resource.empty()) {
      text += ",\"shared\":{\"resource\":" + quoted(dimension.shared_resource) +
              ",\"ps_per_byte\":" + std::to_string(dimension.shared_ps_per_byte) + "}";
    }
    if (dimension.in_network_reduction) text += ",\"in_network_reduction\":true";
    if (dimension.unknown_network) text += ",\"unknown_network\":true";
    text += "}";
  }
  return text + "\n]}\n";
}

}  // namespace trestle
