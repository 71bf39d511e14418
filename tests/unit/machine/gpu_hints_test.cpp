// What hwloc adds about GPUs, of a machine that a file of its own describes.
#include "machine/gpu/gpu_hints.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/machine_files.h"

namespace trestle {
namespace {

// Two nodes with a processor each. A GPU is at node 1, one at the whole machine, and a card of another vendor at node
// 0.
constexpr const char* kMachine = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1024"/>
   <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4">
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
   </object>
   <object type="Bridge" gp_index="6" bridge_type="0-1" depth="0" bridge_pci="0000:[00-01]">
    <object type="PCIDev" gp_index="7" pci_busid="0000:01:00.0" pci_type="0200 [15b3:101b] [0000:0000] 00" pci_link_speed="0.0"/>
   </object>
  </object>
  <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="8">
   <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="9" local_memory="1024"/>
   <object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="10">
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="11"/>
   </object>
   <object type="Bridge" gp_index="12" bridge_type="0-1" depth="0" bridge_pci="0000:[80-81]">
    <object type="PCIDev" gp_index="13" pci_busid="0000:81:00.0" pci_type="0302 [10de:2330] [0000:0000] a1" pci_link_speed="0.0"/>
   </object>
  </object>
  <object type="Bridge" gp_index="14" bridge_type="0-1" depth="0" bridge_pci="0000:[c0-c1]">
   <object type="PCIDev" gp_index="15" pci_busid="0000:c1:00.0" pci_type="0302 [10de:2330] [0000:0000] a1" pci_link_speed="0.0"/>
  </object>
 </object>
</topology>)";

TEST(GpuHints, HwlocKnowsNodes) {
  if (!TRESTLE_HWLOC_BUILT) GTEST_SKIP() << "built without hwloc";
  const MachineFiles files;
  files.write("sys/machine.xml", kMachine);
  const std::vector<PciHint> hints = hints_from_hwloc(files.files().sysfs + "/machine.xml");
  EXPECT_EQ(hints, (std::vector<PciHint>{{"0000:81:00.0", 1}, {"0000:c1:00.0", -1}}));
}

TEST(GpuHints, OfFilesThatAreNoneAreNone) {
  const MachineFiles files;
  files.write("sys/machine.xml", "<topology>");
  EXPECT_TRUE(hints_from_hwloc(files.files().sysfs + "/machine.xml").empty());
  EXPECT_TRUE(hints_from_hwloc("/nonexistent/machine.xml").empty());
}

// Where this machine has some, the kernel's files have them too.
TEST(GpuHints, OfThisMachineAreOfItsDevices) {
  const std::vector<PciHint> hints = hints_from_hwloc();
  if (hints.empty()) GTEST_SKIP() << "hwloc finds no GPU here";
  for (const PciHint& hint : hints)
    EXPECT_TRUE(std::filesystem::exists("/sys/bus/pci/devices/" + hint.pci)) << hint.pci;
}

}  // namespace
}  // namespace trestle
