// The GPUs of invented machines, without NVML, as the kernel's files tell of them.
#include <gtest/gtest.h>

#include "machine/gpu/gpu.h"
#include "machine/gpu/pci_gpus.h"
#include "support/pci_files.h"

namespace trestle {
namespace {

using Names = std::vector<std::string>;

Names addresses_of(const std::vector<Gpu>& gpus) {
  Names addresses;
  for (const Gpu& gpu : gpus) addresses.push_back(gpu.pci);
  return addresses;
}

HostGpus read(const MachineFiles& files, const std::vector<HostInterface>& nics = {},
              const std::vector<LayoutNode>& nodes = {{0, 0}, {1, 0}}) {
  return read_gpus(files.files(), "", nics, nodes);
}

TEST(GpuFiles, ADisplayControllerOfNvidiaIsAGpu) {
  const struct {
    const char* vendor;
    const char* kind;
    bool is_gpu;
  } cases[] = {{"0x10de", "0x030000", true},  {"0x10de", "0x030200", true},  {"0x10de", "0x068000", false},
               {"0x10de", "0x040300", false}, {"0x1002", "0x030200", false}, {"", "0x030200", false},
               {"0x10de", "", false},         {"0x10de", "0x030100", false}};
  for (const auto& c : cases) {
    const MachineFiles files;
    write_pci(files, "pci0000:00/0000:00:05.0", {{"vendor", c.vendor}, {"class", c.kind}});
    EXPECT_EQ(gpus_from_files(files.files()).size(), c.is_gpu ? 1u : 0u) << c.vendor << " " << c.kind;
  }
}

TEST(GpuFiles, VirtualFunctionsArePartsOfTheirGpu) {
  const MachineFiles files;
  write_gpu(files, "pci0000:00/0000:00:05.0", 0);
  write_gpu(files, "pci0000:00/0000:00:05.4", 0);
  files.link("sys/devices/pci0000:00/0000:00:05.4/physfn", "sys/devices/pci0000:00/0000:00:05.0");
  EXPECT_EQ(addresses_of(gpus_from_files(files.files())), Names{"0000:00:05.0"});
}

TEST(GpuFiles, GpusStandInTheOrderOfTheirAddresses) {
  const MachineFiles files;
  for (const char* pci : {"10000:01:00.0", "0000:e3:00.0", "0001:01:00.0", "0000:0f:00.0"})
    write_gpu(files, std::string("pci0000:00/") + pci, 0);
  EXPECT_EQ(addresses_of(gpus_from_files(files.files())),
            (Names{"0000:0f:00.0", "0000:e3:00.0", "0001:01:00.0", "10000:01:00.0"}));
}

TEST(GpuFiles, TheDriverTellsNameAndUuid) {
  const MachineFiles files;
  for (const char* pci : {"0000:07:00.0", "0000:0f:00.0", "0000:17:00.0"})
    write_gpu(files, std::string("pci0000:00/0000:00:01.0/") + pci, 1);
  write_driver(files, "0000:07:00.0", "NVIDIA H100 80GB HBM3", "GPU-2d0e5a53-6a0b-4c5e-9a55-0f1f9c7c3a11");
  write_driver(files, "0000:0f:00.0", "NVIDIA A100", "GPU-" + std::string(8, '?') + "-????");
  const HostGpus host = read(files);
  ASSERT_EQ(host.list.size(), 3u);
  EXPECT_EQ(host.list[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(host.list[0].uuid, "GPU-2d0e5a53-6a0b-4c5e-9a55-0f1f9c7c3a11");
  EXPECT_EQ(host.list[1].name, "NVIDIA A100");
  EXPECT_EQ(host.list[1].uuid, "") << "no program has used it yet";
  EXPECT_EQ(host.list[2].name, "device 10de:2330") << "without a driver";
  for (const Gpu& gpu : host.list) {
    EXPECT_EQ(gpu.numa_node, 1);
    EXPECT_EQ(gpu.memory_bytes, 0u);
    EXPECT_EQ(gpu.nvlinks, -1);
  }
  EXPECT_EQ(host.notes, Names{"NVLinks unknown: NVML was not asked"});
}

// Idle GPUs slow their lanes down. A slot of an older generation, or with fewer lanes, is slower for good.
TEST(GpuFiles, TheRateOfLanesIsThatOfAGpuThatIsAwake) {
  const struct {
    const char* now;
    const char* most;
    const char* slot;
    const char* lanes;
    uint64_t rate_bps;
  } cases[] = {{"2.5 GT/s PCIe", "32.0 GT/s PCIe", "32.0 GT/s PCIe", "16", 504'123'076'923},
               {"2.5 GT/s PCIe", "32.0 GT/s PCIe", "16.0 GT/s PCIe", "16", 252'061'538'461},
               {"2.5 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "8", 126'030'769'230},
               {"8.0 GT/s PCIe", "16.0 GT/s PCIe", "Unknown", "16", 252'061'538'461},
               {"16.0 GT/s PCIe", "Unknown", "Unknown", "8", 126'030'769'230},
               {"16.0 GT/s PCIe", "Unknown", "8.0 GT/s PCIe", "8", 126'030'769'230},
               {"Unknown", "Unknown", "32.0 GT/s PCIe", "16", 0},
               {"32.0 GT/s PCIe", "32.0 GT/s PCIe", "32.0 GT/s PCIe", "many", 0}};
  for (const auto& c : cases) {
    const MachineFiles files;
    write_pci(files, "pci0000:00/0000:00:01.0", {{"max_link_speed", c.slot}});
    write_pci(files, "pci0000:00/0000:00:01.0/0000:01:00.0",
              {{"current_link_speed", c.now}, {"max_link_speed", c.most}, {"current_link_width", c.lanes}});
    EXPECT_EQ(gpu_from_files(files.files(), "0000:01:00.0").pci_bps, c.rate_bps) << c.now << ", " << c.most;
  }
}

TEST(GpuFiles, AHostWithoutGpusHasNothingToSay) {
  const MachineFiles files;
  EXPECT_EQ(read(files), HostGpus{});
  write_pci(files, "pci0000:00/0000:00:05.0", {{"vendor", "0x15b3"}, {"class", "0x020000"}});
  EXPECT_EQ(read(files), HostGpus{});
  EXPECT_EQ(read_gpus({"/nonexistent", "/nonexistent"}, "/nonexistent/nvml.so", {}, {}), HostGpus{});
}

TEST(GpuFiles, NonsenseIsNotKnown) {
  const MachineFiles files;
  write_pci(files, "pci0000:00/0000:00:05.0",
            {{"vendor", "0x10de"}, {"class", "0x030200"}, {"numa_node", "-99"}, {"max_link_speed", ""}});
  write_pci(files, "pci0000:00/0000:00:06.0",
            {{"vendor", "0x10de"}, {"class", "0x030200"}, {"device", "none"}, {"numa_node", "99999999999"}});
  files.write("proc/driver/nvidia/gpus/0000:00:05.0/information", "Model:\nGPU UUID:\nGPU UUID: \t none");
  const HostGpus host = read(files);
  ASSERT_EQ(host.list.size(), 2u);
  EXPECT_EQ(host.list[0], (Gpu{.pci = "0000:00:05.0"}));
  EXPECT_EQ(host.list[1].name, "");
  EXPECT_EQ(host.list[1].numa_node, -1);
}

// Four GPUs and three cards: two GPUs share a switch with a card, one is below a root port of its own at the same node
// as a card, one is at the other node.
TEST(GpuFiles, EachGpuHasItsNearestInterfaces) {
  const MachineFiles files;
  const std::string below_switch = "pci0000:3a/0000:3a:00.0/0000:3b:00.0/";
  write_gpu(files, below_switch + "0000:3c:00.0/0000:3d:00.0", 0);
  write_gpu(files, below_switch + "0000:3c:01.0/0000:3e:00.0", 0);
  write_gpu(files, "pci0000:60/0000:60:00.0/0000:61:00.0", 0);
  write_gpu(files, "pci0000:80/0000:80:00.0/0000:81:00.0", 1);
  const std::vector<HostInterface> nics = {
      {.name = "lo"},
      write_nic(files, "eth0", "pci0000:20/0000:20:00.0/0000:21:00.0", 0),
      write_nic(files, "eth1", below_switch + "0000:3c:02.0/0000:3f:00.0", 0),
      write_nic(files, "eth2", "pci0000:20/0000:20:00.0/0000:21:00.1", 0),
  };
  const HostGpus host = read(files, nics);
  ASSERT_EQ(host.list.size(), 4u);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(host.list[i].nics, Names{"eth1"});
    EXPECT_EQ(host.list[i].nic_distance, NicDistance::kSwitch);
  }
  EXPECT_EQ(host.list[2].nics, (Names{"eth0", "eth1", "eth2"}));
  EXPECT_EQ(host.list[2].nic_distance, NicDistance::kNode);
  EXPECT_EQ(host.list[3].nics, (Names{"eth0", "eth1", "eth2"}));
  EXPECT_EQ(host.list[3].nic_distance, NicDistance::kElsewhere);
}

// The kernel says no node there.
TEST(GpuFiles, OnAMachineWithOneNodeEverythingIsAtIt) {
  const MachineFiles files;
  write_gpu(files, "pci0000:00/0000:00:01.0/0000:01:00.0", -1);
  const std::vector<HostInterface> nics = {write_nic(files, "eth0", "pci0000:00/0000:00:02.0/0000:02:00.0", -1)};
  const HostGpus one = read(files, nics, {{0, 0}});
  ASSERT_EQ(one.list.size(), 1u);
  EXPECT_EQ(one.list[0].nic_distance, NicDistance::kNode);
  EXPECT_EQ(one.list[0].numa_node, 0);
  const HostGpus two = read(files, nics);
  ASSERT_EQ(two.list.size(), 1u);
  EXPECT_EQ(two.list[0].nic_distance, NicDistance::kUnknown);
  EXPECT_EQ(two.list[0].numa_node, -1) << "nobody has said it";
}

}  // namespace
}  // namespace trestle
