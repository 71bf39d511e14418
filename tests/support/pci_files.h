// PCI devices of an invented machine, as the kernel's files show them: GPUs, bridges, network cards. One thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/machine_files.h"

namespace trestle {

using PciFiles = std::vector<std::pair<std::string, std::string>>;  // file and text

// `path`: from the root down, such as "pci0000:3a/0000:3a:00.0/0000:3b:00.0". The bridges on the way are there too.
inline void write_pci(const MachineFiles& machine, const std::string& path, const PciFiles& files) {
  const std::string device = "sys/devices/" + path;
  const std::string address = path.substr(path.rfind('/') + 1);
  for (const auto& [file, text] : files) machine.write(device + "/" + file, text);
  machine.link("sys/bus/pci/devices/" + address, device);
}

// A GPU in 16 lanes of the fifth generation, at a node.
inline void write_gpu(const MachineFiles& machine, const std::string& path, int node) {
  write_pci(machine, path,
            {{"vendor", "0x10de"},
             {"device", "0x2330"},
             {"class", "0x030200"},
             {"numa_node", std::to_string(node)},
             {"current_link_speed", "2.5 GT/s PCIe"},
             {"max_link_speed", "32.0 GT/s PCIe"},
             {"current_link_width", "16"}});
}

// A network card at a node. It is up.
inline HostInterface write_nic(const MachineFiles& machine, const std::string& name, const std::string& path,
                               int node) {
  write_pci(machine, path, {{"vendor", "0x15b3"}, {"class", "0x020000"}, {"numa_node", std::to_string(node)}});
  machine.link("sys/class/net/" + name + "/device", "sys/devices/" + path);
  HostInterface interface { .name = name, .up = true, .running = true };
  interface.facts = read_facts(machine.files().sysfs, name);
  return interface;
}

// As the driver writes it below /proc. `uuid` has question marks until a program has used the GPU.
inline void write_driver(const MachineFiles& machine, const std::string& pci, const std::string& model,
                         const std::string& uuid) {
  machine.write("proc/driver/nvidia/gpus/" + pci + "/information",
                "Model: \t\t " + model + "\nIRQ:   \t\t 64\nGPU UUID: \t " + uuid + "\nBus Location: \t " + pci);
}

}  // namespace trestle
