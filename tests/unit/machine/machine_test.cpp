// What a host has, from the files of an invented machine, and of this host.
#include "machine/machine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/cpu/numa.h"
#include "base/host.h"
#include "support/machine_files.h"

namespace trestle {
namespace {

using Numbers = std::vector<int>;

Result<Machine> machine_of(const MachineFiles& files, const Numbers& usable,
                           const std::vector<HostInterface>& interfaces, const RailRequest& request = {}) {
  const MachineLayout layout = TRY(layout_from_files(files.files()));
  return make_machine(layout, usable, interfaces, request);
}

Numbers range(int first, int last) {
  Numbers numbers;
  for (int number = first; number <= last; ++number) numbers.push_back(number);
  return numbers;
}

TEST(Machines, HavePackagesAndNodes) {
  const MachineFiles files;
  write_two_packages(files);
  const auto made = machine_of(files, range(0, 31), {});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Machine& machine = made.value();
  EXPECT_EQ(machine.processors, range(0, 31));
  EXPECT_EQ(machine.usable, range(0, 31));
  ASSERT_EQ(machine.packages.size(), 2u);
  EXPECT_EQ(machine.packages[1].number, 1);
  EXPECT_EQ(machine.packages[1].cores, 8u);
  EXPECT_EQ(processors_text(machine.packages[1].processors), "8-15,24-31");
  ASSERT_EQ(machine.nodes.size(), 4u);
  EXPECT_EQ(machine.nodes[2].number, 2);
  EXPECT_EQ(machine.nodes[2].package, 1);
  EXPECT_EQ(machine.nodes[2].memory_bytes, uint64_t{3} << 30);
  EXPECT_EQ(processors_text(machine.nodes[2].processors), "8-11,24-27");
}

TEST(Machines, SayWhatThisProcessMayUse) {
  const MachineFiles files;
  write_two_packages(files);
  const auto made = machine_of(files, {4, 5, 20, 40}, {});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Machine& machine = made.value();
  EXPECT_EQ(machine.usable, (Numbers{4, 5, 20})) << "processor 40 is not online";
  EXPECT_EQ(machine.packages[0].usable, (Numbers{4, 5, 20}));
  EXPECT_EQ(machine.packages[1].usable, Numbers{});
  EXPECT_EQ(machine.nodes[0].usable, Numbers{});
  EXPECT_EQ(machine.nodes[1].usable, (Numbers{4, 5, 20}));
  EXPECT_EQ(machine.nodes[1].processors.size(), 8u) << "the others are there all the same";
}

TEST(Machines, ANodeMaySpanPackagesOrHaveNoProcessor) {
  const MachineFiles files;
  files.online("0-1");
  for (const int number : {0, 1}) files.processor(number, number, std::to_string(number));
  files.nodes("0-1");
  files.node(0, "0-1", 1);
  files.node(1, "", 1);
  const auto made = machine_of(files, {0, 1}, {});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().packages.size(), 2u);
  for (const MachineNode& node : made.value().nodes) EXPECT_EQ(node.package, -1) << node.number;
}

TEST(Machines, InterfacesHaveTheirPlaceAndSpeed) {
  const MachineFiles files;
  write_two_packages(files);
  HostInterface loopback{.name = "lo", .up = true, .running = true, .loopback = true};
  HostInterface unplugged{.name = "eth9", .up = true};
  const HostInterface card = files.card("eth0", "0000:3b:00.0", 1, "25000");
  const auto made = machine_of(files, {0}, {loopback, card, unplugged});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const std::vector<MachineInterface>& interfaces = made.value().interfaces;
  ASSERT_EQ(interfaces.size(), 3u);
  EXPECT_FALSE(interfaces[0].rail);
  EXPECT_EQ(interfaces[0].reason, "loopback");
  EXPECT_TRUE(interfaces[1].rail);
  EXPECT_EQ(interfaces[1].reason, "");
  EXPECT_EQ(interfaces[1].fabric, "10.0.0.0/24");
  EXPECT_EQ(interfaces[1].rate_bps, 25'000'000'000u);
  EXPECT_EQ(interfaces[1].interface.facts.numa_node, 1);
  EXPECT_EQ(interfaces[1].interface.facts.pci, "0000:3b:00.0");
  EXPECT_EQ(interfaces[1].interface.facts.pci_bps, 126'030'769'230u);
  EXPECT_EQ(interfaces[1].addresses, std::vector<std::string>{"10.0.0.7/24"});
  EXPECT_EQ(interfaces[2].reason, "up, but without a carrier");
  EXPECT_STREQ(interfaces[0].state(), "up");
  EXPECT_STREQ(interfaces[2].state(), "no carrier");
  EXPECT_STREQ(MachineInterface{}.state(), "down");
}

TEST(Machines, RailsAreThoseThatTheUserNames) {
  const MachineFiles files;
  write_two_packages(files);
  const std::vector<HostInterface> cards = {files.card("eth0", "0000:3b:00.0", 0, "25000"),
                                            files.card("eth1", "0000:86:00.0", 2, "25000")};
  const RailRequest second{.interfaces = {{"eth1", 10'000'000'000}}};
  const auto made = machine_of(files, {0}, cards, second);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made.value().interfaces[0].reason, "not in TRESTLE_RAILS");
  EXPECT_EQ(made.value().interfaces[0].rate_bps, 25'000'000'000u);
  EXPECT_TRUE(made.value().interfaces[1].rail);
  EXPECT_EQ(made.value().interfaces[1].rate_bps, 10'000'000'000u) << "as the user says";
  const auto wrong = machine_of(files, {0}, cards, {.interfaces = {{"eth7"}}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  EXPECT_NE(wrong.error().message.find("TRESTLE_RAILS names 'eth7'"), std::string::npos) << wrong.error().message;

  const auto names = [&](const std::string& named) {
    const auto rails = rails_of(made.value(), second, named);
    std::string text;
    if (!rails.ok()) return rails.error().message;
    for (const LocalRail& rail : rails.value()) text += rail.interface + " ";
    return text;
  };
  EXPECT_EQ(names(""), "eth1 ");
  EXPECT_EQ(names("eth0,eth1"), "eth0 eth1 ") << "as a topology file says";
  EXPECT_NE(names("eth5").find("the topology's interface names 'eth5'"), std::string::npos) << names("eth5");
}

TEST(Machines, AHostWithoutRailsIsNoError) {
  const MachineFiles files;
  write_two_packages(files);
  const auto made = machine_of(files, {0}, {HostInterface{.name = "eth0"}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_FALSE(made.value().interfaces[0].rail);
  EXPECT_EQ(made.value().no_rails, "no interface of this host can be a rail: eth0: down");
  EXPECT_EQ(machine_of(files, {0}, {}).value().no_rails, "this host has no network interface");
}

TEST(Machines, TheVariablesSayWhatRailsAreWanted) {
  const auto request = [](const Environment& environment) { return rail_request(parse_config(environment).value()); };
  const auto some = request({{"TRESTLE_RAILS", "shm;eth0@25g,eth1"}, {"TRESTLE_SOCKET_FAMILY", "AF_INET6"}});
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_EQ(some.value().interfaces, (std::vector<NamedInterface>{{"eth0", 25'000'000'000}, {"eth1"}}));
  EXPECT_EQ(some.value().family, AddressFamily::kIpv6);
  EXPECT_EQ(request({{"TRESTLE_SOCKET_IFNAME", "^eth1"}}).value().filter, "^eth1");
  EXPECT_EQ(request({{"TRESTLE_RAILS", "eth0;eth1"}}).value().interfaces,
            (std::vector<NamedInterface>{{"eth0"}, {"eth1"}}))
      << "the rails of any dimension";
  EXPECT_FALSE(request({{"TRESTLE_RAILS", "eth0@fast"}}).ok());
}

TEST(Machines, AHostThatTellsNothingHasTheProcessorsOfTheMask) {
  const auto made = read_machine({}, {0b101}, {"/nonexistent", "/nonexistent"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Machine& machine = made.value();
  EXPECT_EQ(machine.processors, (Numbers{0, 2}));
  EXPECT_EQ(machine.usable, (Numbers{0, 2}));
  ASSERT_EQ(machine.packages.size(), 1u);
  EXPECT_EQ(machine.packages[0].number, -1);
  EXPECT_EQ(machine.packages[0].cores, 0u);
  ASSERT_EQ(machine.nodes.size(), 1u);
  EXPECT_EQ(machine.source, "the affinity mask, because /nonexistent/devices/system/cpu/online cannot be read");
}

TEST(Machines, ThisHostIsOne) {
  const auto made = read_machine({}, usable_cpu_mask());
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Machine& machine = made.value();
  EXPECT_EQ(machine.hostname, host_name());
  EXPECT_EQ(machine.boot_id, boot_id());
  EXPECT_FALSE(machine.source.empty());
  EXPECT_EQ(machine.usable, processors_of(usable_cpu_mask()));
  ASSERT_FALSE(machine.packages.empty());
  ASSERT_FALSE(machine.nodes.empty());
  size_t in_packages = 0;
  for (const MachinePackage& package : machine.packages) in_packages += package.processors.size();
  EXPECT_EQ(in_packages, machine.processors.size());
  EXPECT_TRUE(std::ranges::any_of(machine.interfaces, [](const auto& one) { return one.interface.name == "lo"; }));
  for (const MachineInterface& one : machine.interfaces)
    EXPECT_EQ(one.rail, one.reason.empty() && machine.no_rails.empty()) << one.interface.name;
}

}  // namespace
}  // namespace trestle
