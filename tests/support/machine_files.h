// MachineFiles: folders like the kernel's /sys and /proc of an invented machine. They are removed with their contents.
// One thread.
#pragma once

#include <filesystem>
#include <string>

#include "local/temporary_folder.h"
#include "machine/layout.h"
#include "transport/rails/inventory.h"

namespace trestle {

class MachineFiles {
 public:
  KernelFiles files() const { return {folder_.path("sys"), folder_.path("proc")}; }

  // `file` below the folder: "sys/...", "proc/...".
  void write(const std::string& file, const std::string& text) const { folder_.write(file, text + "\n"); }
  // A symbolic link to `target`. Both are below the folder.
  void link(const std::string& file, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(file)).parent_path());
    std::filesystem::create_symlink(folder_.path(target), folder_.path(file));
  }
  void online(const std::string& processors) const { write("sys/devices/system/cpu/online", processors); }
  void processor(int number, int package, const std::string& siblings) const {
    const std::string place = "sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/";
    write(place + "physical_package_id", std::to_string(package));
    write(place + "thread_siblings_list", siblings);
  }
  void nodes(const std::string& online) const { write("sys/devices/system/node/online", online); }
  void node(int number, const std::string& processors, uint64_t kib) const {
    const std::string place = "sys/devices/system/node/node" + std::to_string(number);
    write(place + "/cpulist", processors);
    const std::string name = "Node " + std::to_string(number);
    write(place + "/meminfo",
          name + " MemTotal:       " + std::to_string(kib) + " kB\n" + name + " MemFree:        1 kB");
  }
  // An interface of a PCI device. It is up and has an address; the kernel's list is not a file, so it is returned.
  HostInterface card(const std::string& name, const std::string& pci, int node, const std::string& mbps) const {
    const std::string device = "sys/devices/pci0000:00/" + pci;
    write(device + "/numa_node", std::to_string(node));
    write(device + "/current_link_speed", "16.0 GT/s PCIe");
    write(device + "/current_link_width", "8");
    write("sys/class/net/" + name + "/speed", mbps);
    std::filesystem::create_directory_symlink("../../../devices/pci0000:00/" + pci,
                                              folder_.path("sys/class/net/" + name + "/device"));
    HostInterface interface { .name = name, .up = true, .running = true };
    SocketAddress address = parse_address("10.0.0.7:1").value();
    address.set_port(0);
    interface.addresses.push_back({address, 24});
    interface.facts = read_facts(files().sysfs, name);
    return interface;
  }

 private:
  const TemporaryFolder folder_;
};

// Two packages of eight cores with two threads each. A package has two nodes: 0 and 1, 2 and 3. Processors 0 to 15 are
// the first threads of the cores, 16 to 31 the second ones.
inline void write_two_packages(const MachineFiles& machine) {
  machine.online("0-31");
  for (int core = 0; core < 16; ++core) {
    const std::string siblings = std::to_string(core) + "," + std::to_string(core + 16);
    for (const int number : {core, core + 16}) machine.processor(number, core / 8, siblings);
  }
  machine.nodes("0-3");
  for (int node = 0; node < 4; ++node) {
    const auto range = [&](int first) { return std::to_string(first) + "-" + std::to_string(first + 3); };
    machine.node(node, range(4 * node) + "," + range(16 + 4 * node), 1048576 * static_cast<uint64_t>(node + 1));
  }
}

}  // namespace trestle
