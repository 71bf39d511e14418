#include "machine/machine.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/cpu/numa.h"
#include "base/host.h"
#include "transport/rails/rails_text.h"

namespace trestle {
namespace {

std::vector<int> common(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

// The processors for which `is_its` is true, ascending.
template <class Predicate>
std::vector<int> numbers_of(const MachineLayout& layout, Predicate is_its) {
  std::vector<int> numbers;
  for (const LayoutProcessor& processor : layout.processors) {
    if (is_its(processor)) numbers.push_back(processor.number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

void add_packages(const MachineLayout& layout, Machine& machine) {
  std::set<int> numbers;
  for (const LayoutProcessor& processor : layout.processors) numbers.insert(processor.package);
  for (const int number : numbers) {
    MachinePackage& package = machine.packages.emplace_back();
    package.number = number;
    package.processors = numbers_of(layout, [&](const LayoutProcessor& one) { return one.package == number; });
    package.usable = common(package.processors, machine.usable);
    std::set<int> cores;
    for (const LayoutProcessor& processor : layout.processors) {
      if (processor.package == number && processor.core >= 0) cores.insert(processor.core);
    }
    package.cores = cores.size();
  }
}

void add_nodes(const MachineLayout& layout, Machine& machine) {
  for (const LayoutNode& at : layout.nodes) {
    MachineNode& node = machine.nodes.emplace_back();
    node.number = at.number;
    node.memory_bytes = at.memory_bytes;
    std::set<int> packages;
    node.processors = numbers_of(layout, [&](const LayoutProcessor& one) {
      if (one.node == at.number) packages.insert(one.package);
      return one.node == at.number;
    });
    node.usable = common(node.processors, machine.usable);
    if (packages.size() == 1) node.package = *packages.begin();
  }
}

std::vector<HostInterface> interfaces_of(const Machine& machine) {
  std::vector<HostInterface> interfaces;
  for (const MachineInterface& one : machine.interfaces) interfaces.push_back(one.interface);
  return interfaces;
}

// For a host that does not report its processors: it has at least those that this process may use.
MachineLayout layout_of_mask(const std::vector<int>& usable, const std::string& why) {
  MachineLayout layout;
  layout.source = "the affinity mask, because " + why;
  layout.nodes.push_back({});
  for (const int number : usable) layout.processors.push_back({.number = number, .node = 0});
  return layout;
}

// "10.0.0.1/24", "fd00::1/64".
std::string address_text(const InterfaceAddress& one) {
  return HostAddress(one.address).text() + "/" + std::to_string(one.prefix);
}

MachineInterface described(const HostInterface& interface) {
  MachineInterface found{.interface = interface, .rate_bps = interface.facts.rate_bps};
  for (const InterfaceAddress& one : interface.addresses) found.addresses.push_back(address_text(one));
  return found;
}

Status judge_interfaces(const RailRequest& request, Machine& machine) {
  if (machine.interfaces.empty() && request.interfaces.empty()) {
    machine.no_rails = "this host has no network interface";
    return {};
  }
  const auto choice = choose_rails(interfaces_of(machine), request);
  if (!choice.ok()) {
    if (choice.error().code == Code::kInvalidArgument) return choice.error();
    machine.no_rails = choice.error().message;
    return {};
  }
  for (MachineInterface& one : machine.interfaces) {
    const auto rail = std::ranges::find(choice.value().rails, one.interface.name, &LocalRail::interface);
    if (rail != choice.value().rails.end()) {
      one.rail = true;
      one.fabric = rail->fabric.text();
      one.rate_bps = rail->rate_bps;
    }
    const auto out = std::ranges::find(choice.value().left_out, one.interface.name, &LeftOutInterface::interface);
    if (out != choice.value().left_out.end()) one.reason = out->reason;
  }
  return {};
}

}  // namespace

const char* MachineInterface::state() const {
  if (!interface.up) return "down";
  return interface.running ? "up" : "no carrier";
}

Result<RailRequest> rail_request(const Config& config) {
  RailRequest request;
  request.interfaces = TRY(interfaces_of_all_dimensions(config.rails));
  request.filter = config.socket_interfaces;
  request.family = TRY(parse_family(config.socket_family));
  return request;
}

Result<Machine> make_machine(const MachineLayout& layout, const std::vector<int>& usable,
                             const std::vector<HostInterface>& interfaces, const RailRequest& request) {
  Machine machine;
  machine.source = layout.source;
  machine.processors = numbers_of(layout, [](const LayoutProcessor&) { return true; });
  machine.usable = common(machine.processors, usable);
  add_packages(layout, machine);
  add_nodes(layout, machine);
  for (const HostInterface& interface : interfaces) machine.interfaces.push_back(described(interface));
  TRY(judge_interfaces(request, machine));
  return machine;
}

Result<Machine> read_machine(const RailRequest& request, const std::vector<uint64_t>& mask, const KernelFiles& files,
                             const std::string& nvml) {
  const std::vector<int> usable = processors_of(mask);
  const auto read = read_layout(files);
  const MachineLayout layout = read.ok() ? read.value() : layout_of_mask(usable, read.error().message);
  const std::vector<HostInterface> interfaces = TRY(read_interfaces(files.sysfs));
  Machine machine = TRY(make_machine(layout, usable, interfaces, request));
  machine.hostname = host_name();
  machine.boot_id = boot_id();
  machine.gpus = read_gpus(files, nvml, interfaces, layout.nodes);
  return machine;
}

Result<std::vector<LocalRail>> rails_of(const Machine& machine, const RailRequest& request, const std::string& named) {
  RailRequest its = request;
  if (!named.empty()) {
    its.interfaces = TRY(interfaces_of_all_dimensions(named));
    its.named_by = "the topology's interface";
  }
  return TRY(choose_rails(interfaces_of(machine), its)).rails;
}

}  // namespace trestle
