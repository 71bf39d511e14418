#include "base/cpu/numa.h"
#include "cli/json_writer.h"
#include "cli/topo/topo_view.h"

namespace trestle {
namespace {

using json::text;

// null: not known.
std::string known(bool is_known, uint64_t value) {
  return is_known ? std::to_string(value) : "null";
}

std::string number_or_null(int value) {
  return value < 0 ? "null" : std::to_string(value);
}

std::string text_or_null(const std::string& value) {
  return value.empty() ? "null" : text(value);
}

std::string processors_json(const std::vector<int>& processors) {
  return text(processors_text(processors));
}

std::string package_json(const MachinePackage& package) {
  return json::object({{"number", number_or_null(package.number)},
                       {"cores", known(package.cores > 0, package.cores)},
                       {"processors", processors_json(package.processors)},
                       {"usable", processors_json(package.usable)}});
}

std::string node_json(const MachineNode& node) {
  return json::object({{"number", std::to_string(node.number)},
                       {"package", number_or_null(node.package)},
                       {"memory_bytes", known(node.memory_bytes > 0, node.memory_bytes)},
                       {"processors", processors_json(node.processors)},
                       {"usable", processors_json(node.usable)}});
}

std::string interface_json(const MachineInterface& one) {
  const InterfaceFacts& facts = one.interface.facts;
  return json::object({{"name", text(one.interface.name)},
                       {"state", text(one.state())},
                       {"rate_bps", known(one.rate_bps > 0, one.rate_bps)},
                       {"node", number_or_null(facts.numa_node)},
                       {"pci", text_or_null(facts.pci)},
                       {"pci_bps", known(facts.pci_bps > 0, facts.pci_bps)},
                       {"addresses", json::array(one.addresses, [](const std::string& at) { return text(at); })},
                       {"rail", one.rail ? "true" : "false"},
                       {"fabric", text_or_null(one.fabric)},
                       {"reason", text_or_null(one.reason)}});
}

const char* distance_json(NicDistance distance) {
  switch (distance) {
    case NicDistance::kSwitch:
      return "\"switch\"";
    case NicDistance::kRootPort:
      return "\"root_port\"";
    case NicDistance::kNode:
      return "\"node\"";
    case NicDistance::kElsewhere:
      return "\"elsewhere\"";
    case NicDistance::kUnknown:
      break;
  }
  return "null";
}

std::string gpu_json(const Gpu& gpu) {
  return json::object({{"pci", text(gpu.pci)},
                       {"uuid", text_or_null(gpu.uuid)},
                       {"name", text_or_null(gpu.name)},
                       {"memory_bytes", known(gpu.memory_bytes > 0, gpu.memory_bytes)},
                       {"node", number_or_null(gpu.numa_node)},
                       {"pci_bps", known(gpu.pci_bps > 0, gpu.pci_bps)},
                       {"nvlinks", number_or_null(gpu.nvlinks)},
                       {"nvlink_bps", known(gpu.nvlink_bps > 0, gpu.nvlink_bps)},
                       {"interfaces", json::array(gpu.nics, [](const std::string& name) { return text(name); })},
                       {"distance", distance_json(gpu.nic_distance)}});
}

std::string gpu_link_json(const GpuLink& link) {
  return json::object({{"gpus", json::array({text(link.a), text(link.b)})},
                       {"nvlinks", std::to_string(link.nvlinks)},
                       {"rate_bps", known(link.rate_bps > 0, link.rate_bps)},
                       {"through_switch", link.through_switch ? "true" : "false"}});
}

std::string rails_json(const DimensionRailsView& view) {
  return json::array(view.rails, [](const LocalRail& rail) { return text(rail.interface); });
}

std::string host_json(const TopoView& view) {
  const Machine& machine = view.machine;
  std::vector<std::pair<std::string, std::string>> members = {
      {"name", text(machine.hostname)},
      {"boot_id", text_or_null(machine.boot_id)},
      {"source", text(machine.source)},
      {"processors", processors_json(machine.processors)},
      {"usable", processors_json(machine.usable)},
      {"packages", json::array(machine.packages, package_json)},
      {"nodes", json::array(machine.nodes, node_json)},
      {"interfaces", json::array(machine.interfaces, interface_json)}};
  if (!machine.gpus.list.empty() || !machine.gpus.notes.empty()) {
    members.emplace_back("gpus", json::array(machine.gpus.list, gpu_json));
    members.emplace_back("gpu_links", json::array(machine.gpus.links, gpu_link_json));
    members.emplace_back("gpu_notes",
                         json::array(machine.gpus.notes, [](const std::string& one) { return text(one); }));
  }
  if (view.topology) members.emplace_back("dimension_rails", json::array(view.rails, rails_json));
  return json::object(members);
}

std::string rank_json(const RankView& one) {
  return json::object({{"rank", std::to_string(one.rank)},
                       {"host", text(one.host)},
                       {"host_index", std::to_string(one.host_index)},
                       {"processors", text_or_null(one.processors)}});
}

std::string other_json(const HostView& one) {
  return json::object(
      {{"name", text(one.name)}, {"host_index", std::to_string(one.host_index)}, {"summary", text(one.summary)}});
}

}  // namespace

std::string topo_json(const TopoView& view) {
  std::string all = "{\"host\":" + host_json(view);
  if (!view.ranks.empty()) all += ",\n\"ranks\":" + json::array(view.ranks, rank_json);
  if (!view.others.empty()) all += ",\n\"hosts\":" + json::array(view.others, other_json);
  if (!view.topology) return all + "}\n";
  // The rest is a topology file, whose first brace is here already.
  return all + ",\n" + to_json(*view.topology).substr(1);
}

}  // namespace trestle
