// The parts of sentences that text and picture share.
#include <algorithm>

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

const char* distance_words(NicDistance distance) {
  switch (distance) {
    case NicDistance::kSwitch:
      return "same PCIe switch";
    case NicDistance::kRootPort:
      return "same root port";
    case NicDistance::kNode:
      return "same NUMA node";
    case NicDistance::kElsewhere:
      return "another NUMA node";
    case NicDistance::kUnknown:
      break;
  }
  return "not known how near";
}

// Speeds of NVLinks are usually stated in bytes per second.
std::string link_rate_words(uint64_t rate_bps) {
  if (rate_bps == 0) return "speed unknown";
  return short_number(static_cast<double>(rate_bps) / 8e9) + " GB/s";
}

bool all_joined_alike(const HostGpus& gpus) {
  const size_t count = gpus.list.size();
  if (gpus.links.empty() || gpus.links.size() != count * (count - 1) / 2) return false;
  return std::ranges::all_of(gpus.links, [&](const GpuLink& one) {
    return one.through_switch && one.nvlinks == gpus.links[0].nvlinks && one.rate_bps == gpus.links[0].rate_bps;
  });
}

std::string link_words(const GpuLink& link) {
  return counted(static_cast<size_t>(link.nvlinks), "NVLink") +
         (link.through_switch ? " each, through NVSwitches, " : ", ") + link_rate_words(link.rate_bps);
}

}  // namespace

std::string nvlinks_words(const Gpu& gpu) {
  if (gpu.nvlinks < 0) return "NVLinks unknown";
  return gpu.nvlinks == 0 ? "no NVLink" : counted(static_cast<size_t>(gpu.nvlinks), "NVLink");
}

std::string nearest_words(const Gpu& gpu) {
  std::string names;
  for (const std::string& name : gpu.nics) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names + " (" + distance_words(gpu.nic_distance) + ")";
}

std::string short_uuid(const Gpu& gpu) {
  static constexpr size_t kLength = 12;  // "GPU-" and eight digits
  return gpu.uuid.empty() ? "-" : gpu.uuid.substr(0, kLength);
}

std::vector<GpuLinkWords> gpu_link_words(const HostGpus& gpus, size_t most) {
  if (all_joined_alike(gpus)) return {{"all " + counted(gpus.list.size(), "GPU"), link_words(gpus.links[0])}};
  std::vector<GpuLinkWords> words;
  const size_t shown = std::min(gpus.links.size(), most);
  for (size_t i = 0; i < shown; ++i)
    words.push_back({gpus.links[i].a + " - " + gpus.links[i].b, link_words(gpus.links[i])});
  if (shown < gpus.links.size())
    words.push_back({"left out", counted(gpus.links.size() - shown, "more pair") + "; --json has all"});
  return words;
}

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
  text +=
      counted(machine.processors.size(), "processor") + " (" + usable_words(machine.usable, machine.processors) + ")";
  return machine.gpus.list.empty() ? text : text + ", " + counted(machine.gpus.list.size(), "GPU");
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
