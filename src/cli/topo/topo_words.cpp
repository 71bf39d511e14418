// The parts of sentences that text and picture share.
#include "base/cpu/numa.h"
#include "cli/text_line.h"
#include "cli/topo/topo_view.h"

namespace trestle {
namespace {

std::string counted(size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// "25", "2.5": at most one digit after the point.
std::string short_number(double value) {
  std::string text = line("%.1f", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

std::string rate_words(uint64_t rate_bps) {
  if (rate_bps == 0) return "speed unknown";
  const auto rate = static_cast<double>(rate_bps);
  if (rate_bps >= 1'000'000'000) return short_number(rate / 1e9) + " Gb/s";
  return short_number(rate / 1e6) + " Mb/s";
}

std::string memory_words(uint64_t bytes) {
  if (bytes == 0) return "memory unknown";
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib >= 1024 ? short_number(mib / 1024) + " GiB" : short_number(mib) + " MiB";
}

std::string rail_words(const MachineInterface& interface) {
  if (interface.rail) return "rail, " + interface.fabric;
  return interface.reason.empty() ? "no rail" : "no rail: " + interface.reason;
}

std::string usable_words(const std::vector<int>& usable, const std::vector<int>& processors) {
  if (usable.empty()) return "none usable";
  return usable.size() == processors.size() ? "all usable" : "usable: " + processors_text(usable);
}

std::string summary_text(const Machine& machine) {
  size_t cores = 0;
  for (const MachinePackage& package : machine.packages) cores += package.cores;
  std::string text =
      counted(machine.packages.size(), "package") + ", " + counted(machine.nodes.size(), "NUMA node") + ", ";
  if (cores > 0) text += counted(cores, "core") + ", ";
  return text + counted(machine.processors.size(), "processor") + " (" +
         usable_words(machine.usable, machine.processors) + ")";
}

std::string rails_text(const DimensionRailsView& view) {
  if (view.rails.empty()) return "none: " + view.reason;
  std::string text;
  for (const LocalRail& rail : view.rails) {
    text += (text.empty() ? "" : ", ") + rail.interface + " " + rate_words(rail.rate_bps);
    if (rail.numa_node >= 0) text += " at node " + std::to_string(rail.numa_node);
  }
  return text;
}

}  // namespace trestle
