// The interfaces of this host, and what a made-up sysfs says of some.
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "local/temporary_folder.h"
#include "transport/rails/inventory.h"
#include "transport/rails/pci.h"

namespace trestle {
namespace {

// A folder like /sys with invented interfaces.
class Sysfs {
 public:
  std::string path() const { return folder_.path(); }
  // `file` below class/net.
  void write(const std::string& file, const std::string& text) const {
    folder_.write("class/net/" + file, text + "\n");
  }
  void folder(const std::string& name) const { std::filesystem::create_directories(net(name)); }
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories(net(name).parent_path());
    std::filesystem::create_symlink(target, net(name));
  }

 private:
  std::filesystem::path net(const std::string& name) const { return folder_.path("class/net/" + name); }
  const TemporaryFolder folder_;
};

TEST(Inventory, SpeedAndNodeOfHardwareAreRead) {
  struct Case {
    const char* speed;
    const char* node;
    uint64_t rate_bps;
    int numa_node;
  };
  const Case kCases[] = {{"25000", "1", 25'000'000'000, 1},
                         {"10", "0", 10'000'000, 0},
                         {"-1", "-1", 0, -1},
                         {"4294967295", "-7", 0, -1},
                         {"0", "1", 0, 1},
                         {"fast", "here", 0, -1},
                         {"", "", 0, -1},
                         {"1000000000", "3", 1'000'000'000'000'000, 3}};
  for (const Case& c : kCases) {
    const Sysfs sysfs;
    sysfs.write("eth0/speed", c.speed);
    sysfs.write("eth0/device/numa_node", c.node);
    const InterfaceFacts facts = read_facts(sysfs.path(), "eth0");
    EXPECT_TRUE(facts.hardware);
    EXPECT_EQ(facts.rate_bps, c.rate_bps) << c.speed;
    EXPECT_EQ(facts.numa_node, c.numa_node) << c.node;
  }
}

// A virtio device is a part of its PCI device, which has the node.
TEST(Inventory, ThePciDeviceIsFoundBehindItsParts) {
  const Sysfs sysfs;
  sysfs.folder("usb0/device");
  const std::string card = "../../devices/pci0000:3a/0000:3b:00.1";
  sysfs.write(card + "/numa_node", "1");
  sysfs.write(card + "/current_link_speed", "8.0 GT/s PCIe");
  sysfs.write(card + "/current_link_width", "16");
  sysfs.folder(card + "/virtio2");
  sysfs.link("eth0/device", "../../../devices/pci0000:3a/0000:3b:00.1");
  sysfs.link("eth1/device", "../../../devices/pci0000:3a/0000:3b:00.1/virtio2");
  for (const char* name : {"eth0", "eth1"}) {
    const InterfaceFacts facts = read_facts(sysfs.path(), name);
    EXPECT_EQ(facts.pci, "0000:3b:00.1") << name;
    EXPECT_EQ(facts.numa_node, 1) << name;
    EXPECT_EQ(facts.pci_bps, 126'030'769'230u) << name;
  }
  EXPECT_EQ(read_facts(sysfs.path(), "usb0").pci, "");
}

TEST(Inventory, ThePathOfAPciDeviceHasItsBridges) {
  const Sysfs sysfs;
  sysfs.folder("../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/10000:3d:00.1/virtio2");
  sysfs.link("eth0/device", "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/10000:3d:00.1/virtio2");
  sysfs.folder("usb0/device");
  EXPECT_EQ(pci_path(sysfs.path() + "/class/net/eth0/device"),
            (std::vector<std::string>{"0000:3a:00.0", "0000:3b:00.0", "0000:3c:08.0", "10000:3d:00.1"}));
  EXPECT_EQ(pci_path(sysfs.path() + "/class/net/usb0/device"), std::vector<std::string>{});
  EXPECT_EQ(pci_path("/nonexistent"), std::vector<std::string>{});
}

TEST(Inventory, TheRateOfLanesIsWithoutTheirCode) {
  EXPECT_EQ(pci_rate_bps("2.5 GT/s PCIe", 4), 8'000'000'000u);
  EXPECT_EQ(pci_rate_bps("16.0 GT/s PCIe", 8), 126'030'769'230u);
  EXPECT_EQ(pci_rate_bps("64.0 GT/s PCIe", 1), 64'000'000'000u);
  for (const char* text : {"", "Unknown", "-1 GT/s", "0"}) EXPECT_EQ(pci_rate_bps(text, 8), 0u) << text;
  for (const int64_t lanes : {0, -1, 255}) EXPECT_EQ(pci_rate_bps("16.0 GT/s PCIe", lanes), 0u) << lanes;
}

TEST(Inventory, MissingFilesAreUnknown) {
  const Sysfs sysfs;
  sysfs.folder("eth0/device");
  InterfaceFacts hardware;
  hardware.hardware = true;
  EXPECT_EQ(read_facts(sysfs.path(), "eth0"), hardware);
  EXPECT_EQ(read_facts(sysfs.path(), "eth1"), InterfaceFacts{});
  EXPECT_EQ(read_facts("/nonexistent", "eth0"), InterfaceFacts{});
}

// A veth says 10000, which is nobody's speed.
TEST(Inventory, WhatSoftwareClaimsIsUnknown) {
  const Sysfs sysfs;
  sysfs.write("eth0/speed", "10000");
  const InterfaceFacts facts = read_facts(sysfs.path(), "eth0");
  EXPECT_FALSE(facts.hardware);
  EXPECT_EQ(facts.rate_bps, 0u);
  sysfs.folder("eth0/device");
  EXPECT_EQ(read_facts(sysfs.path(), "eth0").rate_bps, 10'000'000'000u);
}

TEST(Inventory, BridgesAndTheirPortsAreSeen) {
  const Sysfs sysfs;
  for (const char* name : {"br0", "docker0"}) sysfs.folder(std::string(name) + "/bridge");
  sysfs.folder("eth0/device");
  sysfs.link("br0/brif/eth0", "../../eth0/brport");
  sysfs.link("eth0/brport/bridge", "../../br0");
  sysfs.link("docker0/brif/veth7", "../../veth7/brport");
  sysfs.link("veth7/brport/bridge", "../../docker0");
  const InterfaceFacts outer = read_facts(sysfs.path(), "br0");
  EXPECT_TRUE(outer.bridge);
  EXPECT_TRUE(outer.hardware_port);
  EXPECT_EQ(outer.bridge_of, "");
  const InterfaceFacts inner = read_facts(sysfs.path(), "docker0");
  EXPECT_TRUE(inner.bridge);
  EXPECT_FALSE(inner.hardware_port);
  EXPECT_EQ(read_facts(sysfs.path(), "eth0").bridge_of, "br0");
  EXPECT_EQ(read_facts(sysfs.path(), "veth7").bridge_of, "docker0");
}

TEST(Inventory, TunnelsAreSeen) {
  const Sysfs sysfs;
  sysfs.write("tap0/tun_flags", "0x1002");
  sysfs.write("tap0/type", "1");
  sysfs.write("wg0/type", "65534");
  sysfs.write("gre0/type", "778");
  sysfs.write("ib0/type", "32");
  sysfs.write("eth0/type", "1");
  for (const char* name : {"tap0", "wg0", "gre0"}) EXPECT_TRUE(read_facts(sysfs.path(), name).tunnel) << name;
  for (const char* name : {"ib0", "eth0"}) EXPECT_FALSE(read_facts(sysfs.path(), name).tunnel) << name;
}

// sysfs shows the network namespace that it was mounted in.
TEST(Inventory, AnInterfaceOfAnotherNamespaceIsNotTakenForThisOne) {
  const Sysfs sysfs;
  sysfs.write("eth0/ifindex", "7");
  sysfs.write("eth0/speed", "1000");
  sysfs.folder("eth0/device");
  EXPECT_EQ(read_facts(sysfs.path(), "eth0", 7).rate_bps, 1'000'000'000u);
  EXPECT_EQ(read_facts(sysfs.path(), "eth0", 8), InterfaceFacts{});
}

TEST(Inventory, ThisHostHasLoopback) {
  const auto all = read_interfaces();
  ASSERT_TRUE(all.ok()) << all.error().message;
  const auto lo = std::ranges::find(all.value(), "lo", &HostInterface::name);
  ASSERT_NE(lo, all.value().end());
  EXPECT_TRUE(lo->up && lo->running && lo->loopback);
  EXPECT_EQ(lo->index, if_nametoindex("lo"));
  const auto v4 = std::ranges::find(lo->addresses, parse_address("127.0.0.1:1").value(), [](InterfaceAddress one) {
    one.address.set_port(1);
    return one.address;
  });
  ASSERT_NE(v4, lo->addresses.end());
  EXPECT_EQ(v4->prefix, 8);
  EXPECT_EQ(v4->address.port(), 0);
  for (size_t i = 0; i < all.value().size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(all.value()[i].name, all.value()[j].name) << "an interface is there twice";
  }
}

// In a network namespace of this thread: gives lo the address 10.9.8.7 with the label lo:1.
bool make_alias() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  const UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo:1");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x0a090807);
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  if (ioctl(control.get(), SIOCSIFADDR, &request) != 0) return false;
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ioctl(control.get(), SIOCSIFFLAGS, &request) == 0;
}

// A rail is named after its interface, and its address may be an alias.
TEST(Inventory, AnAliasIsAnAddressOfItsInterface) {
  bool made = false;
  std::thread([&made] {
    made = make_alias();
    if (!made) return;
    const auto all = read_interfaces();
    ASSERT_TRUE(all.ok()) << all.error().message;
    ASSERT_EQ(all.value().size(), 1u);
    const HostInterface& lo = all.value()[0];
    const auto alias = std::ranges::find(lo.addresses, "lo:1", &InterfaceAddress::label);
    ASSERT_NE(alias, lo.addresses.end());
    EXPECT_EQ(format_host(alias->address), "10.9.8.7");
    EXPECT_EQ(interface_fault("lo", alias->address), "");
  }).join();
  if (!made) GTEST_SKIP() << "no network namespace can be made here";
}

TEST(Inventory, InterfacesHaveNoFaultAtAnAddressOfTheirs) {
  const auto interfaces = read_interfaces().value();
  for (const HostInterface& interface : interfaces) {
    for (const InterfaceAddress& one : interface.addresses) {
      const std::string fault = interface_fault(interface.name, one.address);
      EXPECT_EQ(fault.empty(), interface.running) << format_host(one.address) << ": " << fault;
    }
  }
  EXPECT_EQ(interface_fault("lo", parse_address("[::ffff:127.0.0.1]:1").value()), "");
  for (const char* foreign : {"192.0.2.1:1", "[2001:db8::1]:1"})
    EXPECT_EQ(interface_fault("lo", parse_address(foreign).value()), "lo is gone, or its address has changed");
}

TEST(Inventory, TheRootOfSysfsIsTheOneThatIsGiven) {
  const Sysfs sysfs;
  sysfs.write("lo/ifindex", std::to_string(if_nametoindex("lo")));
  sysfs.write("lo/speed", "123");
  sysfs.folder("lo/device");
  const auto all = read_interfaces(sysfs.path());
  ASSERT_TRUE(all.ok()) << all.error().message;
  const auto lo = std::ranges::find(all.value(), "lo", &HostInterface::name);
  ASSERT_NE(lo, all.value().end());
  EXPECT_EQ(lo->facts.rate_bps, 123'000'000u);
}

}  // namespace
}  // namespace trestle
