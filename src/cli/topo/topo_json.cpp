#include "base/cpu/numa.h"
#include "base/text/json.h"
#include "cli/topo/topo_view.h"

namespace trestle {
namespace {

// null: not known.
Json known(bool is_known, uint64_t value) {
  return is_known ? Json(value) : nullptr;
}

Json number_or_null(int value) {
  return value < 0 ? nullptr : Json(value);
}

Json text_or_null(const std::string& value) {
  return value.empty() ? nullptr : Json(value);
}

Json package_json(const MachinePackage& package) {
  return Json::object({{"number", number_or_null(package.number)},
                       {"cores", known(package.cores > 0, package.cores)},
                       {"processors", processors_text(package.processors)},
                       {"usable", processors_text(package.usable)}});
}

Json node_json(const MachineNode& node) {
  return Json::object({{"number", node.number},
                       {"package", number_or_null(node.package)},
                       {"memory_bytes", known(node.memory_bytes > 0, node.memory_bytes)},
                       {"processors", processors_text(node.processors)},
                       {"usable", processors_text(node.usable)}});
}

Json interface_json(const MachineInterface& one) {
  const InterfaceFacts& facts = one.interface.facts;
  return Json::object({{"name", one.interface.name},
                       {"state", one.state()},
                       {"rate_bps", known(one.rate_bps > 0, one.rate_bps)},
                       {"node", number_or_null(facts.numa_node)},
                       {"pci", text_or_null(facts.pci)},
                       {"pci_bps", known(facts.pci_bps > 0, facts.pci_bps)},
                       {"addresses", one.addresses},
                       {"rail", one.rail},
                       {"fabric", text_or_null(one.fabric)},
                       {"reason", text_or_null(one.reason)}});
}

Json distance_json(NicDistance distance) {
  switch (distance) {
    case NicDistance::kSwitch:
      return "switch";
    case NicDistance::kRootPort:
      return "root_port";
    case NicDistance::kNode:
      return "node";
    case NicDistance::kElsewhere:
      return "elsewhere";
    case NicDistance::kUnknown:
      break;
  }
  return nullptr;
}

Json gpu_json(const Gpu& gpu) {
  return Json::object({{"pci", gpu.pci},
                       {"uuid", text_or_null(gpu.uuid)},
                       {"name", text_or_null(gpu.name)},
                       {"memory_bytes", known(gpu.memory_bytes > 0, gpu.memory_bytes)},
                       {"node", number_or_null(gpu.numa_node)},
                       {"pci_bps", known(gpu.pci_bps > 0, gpu.pci_bps)},
                       {"nvlinks", number_or_null(gpu.nvlinks)},
                       {"nvlink_bps", known(gpu.nvlink_bps > 0, gpu.nvlink_bps)},
                       {"interfaces", gpu.nics},
                       {"distance", distance_json(gpu.nic_distance)}});
}

Json gpu_link_json(const GpuLink& link) {
  return Json::object({{"gpus", Json::array({link.a, link.b})},
                       {"nvlinks", link.nvlinks},
                       {"rate_bps", known(link.rate_bps > 0, link.rate_bps)},
                       {"through_switch", link.through_switch}});
}

Json rails_json(const DimensionRailsView& view) {
  return json_list(view.rails, [](const LocalRail& rail) { return rail.interface; });
}

Json host_json(const TopoView& view) {
  const Machine& machine = view.machine;
  Json members = {{"name", machine.hostname},
                  {"boot_id", text_or_null(machine.boot_id)},
                  {"source", machine.source},
                  {"processors", processors_text(machine.processors)},
                  {"usable", processors_text(machine.usable)},
                  {"packages", json_list(machine.packages, package_json)},
                  {"nodes", json_list(machine.nodes, node_json)},
                  {"interfaces", json_list(machine.interfaces, interface_json)}};
  if (!machine.gpus.list.empty() || !machine.gpus.notes.empty()) {
    members["gpus"] = json_list(machine.gpus.list, gpu_json);
    members["gpu_links"] = json_list(machine.gpus.links, gpu_link_json);
    members["gpu_notes"] = machine.gpus.notes;
  }
  if (view.topology) members["dimension_rails"] = json_list(view.rails, rails_json);
  return members;
}

Json rank_json(const RankView& one) {
  return Json::object({{"rank", one.rank},
                       {"host", one.host},
                       {"host_index", one.host_index},
                       {"processors", text_or_null(one.processors)}});
}

Json other_json(const HostView& one) {
  return Json::object({{"name", one.name}, {"host_index", one.host_index}, {"summary", one.summary}});
}

}  // namespace

std::string topo_json(const TopoView& view) {
  std::string all = "{\"host\":" + json_text(host_json(view));
  if (!view.ranks.empty()) all += ",\n\"ranks\":" + json_text(json_list(view.ranks, rank_json));
  if (!view.others.empty()) all += ",\n\"hosts\":" + json_text(json_list(view.others, other_json));
  if (!view.topology) return all + "}\n";
  // The rest is a topology file, whose first brace is here already.
  return all + ",\n" + to_json(*view.topology).substr(1);
}

}  // namespace trestle
