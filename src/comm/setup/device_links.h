// How the dimensions of a communicator carry messages between memory of devices, agreed by all ranks
// (topology/device_topology.h). Found while a communicator is made, after the paths between devices.
//
// Used by the creating thread. Which ranks have paths is known to each rank for itself, so the ranks exchange what each
// has found, and the worst holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rank_names.h"
#include "base/result.h"
#include "machine/gpu/nvlink_pairs.h"
#include "memory/peer_paths.h"
#include "topology/device_topology.h"
#include "topology/topology.h"

namespace trestle {

// What a rank tells the others of its device: "90 26800000 0000:3b:00.0", its compute capability, the speed of its
// memory in 10^6 bit/s, and its PCI address. device: opened. Errors: the driver's.
Result<std::string> tell_device(int device);

// The PCI address in it; "": there is none.
std::string pci_of(const std::string& told);

// One way, 10^6 bit/s, between two devices of which one reads the other. by_nvml: their NVLinks as NVML says; nullopt:
// it does not know. by_driver: CUDA's driver says that NVLinks join them, but not how many: then they count as all of a
// device's. NVML's speed includes the line code, so it only lowers the nominal one.
uint64_t mbps_between(const DeviceSpeeds& speeds, const std::optional<GpuLink>& by_nvml, bool by_driver);

// By dimension, the worst link of this rank. device: its own, opened; -1: none. paths: to each rank. told: by rank,
// what tell_device() has said there; "": nothing, because it has no device. nvlinks: asked only if one device reads
// another.
std::vector<DeviceLink> links_of_rank(const Topology& topology, int32_t rank, int device, const PeerPaths& paths,
                                      const std::vector<std::string>& told, NvlinkPairs& nvlinks);

// Says which paths share their messages with host memory (PeerPaths::divide()): all, or those between two devices that
// NVLinks join. The arguments are those of links_of_rank().
void divide_paths(PeerPaths& paths, bool all, int32_t rank, int device, const std::vector<std::string>& told,
                  NvlinkPairs& nvlinks);

std::string encode(const std::vector<DeviceLink>& links);
// The ranks on the device that most of them use. hosts: by rank, equal where two ranks are on one host.
int32_t ranks_per_device(const std::vector<std::string>& told, const std::vector<std::string>& hosts);
// The worst by dimension. said: by rank, encode() of its links. kRemoteError, with the name of the rank: it is none of
// so many dimensions.
Result<std::vector<DeviceLink>> worst_links(const std::vector<std::string>& said, size_t dimensions,
                                            const RankNames& names);

}  // namespace trestle
