// Calibration files: measured link speeds of certain ranks on certain hosts, kept in a folder for the next job.
//
// A file is one line that says for whom it holds and a topology file. It is named after its key; whoever reads it
// checks the key inside, so a file that was copied, cut or edited is refused. Pure functions but for the files that
// they name, any thread. A file is written beside its place and moved there, so readers never see half of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// Equal for equal hosts of equal ranks, sizes, kinds, transports and interfaces of dimensions, and version
// (TRESTLE_VERSION_CODE). A host that was started anew counts as another one.
uint64_t calibration_key(const Topology& topology, const std::vector<RankPlace>& places, uint32_t version);
std::string calibration_path(const std::string& folder, uint64_t key);

// Whether there is anything that a calibration could say: a bandwidth or latency that is nominal.
bool has_nominal(const Topology& topology);
// Measured numbers where the topology has none. Shared resources belong to measured bandwidths: they come along only
// where the topology said neither a bandwidth nor a resource. Dimensions must have equal sizes (CHECK).
void fill_nominal(Topology& topology, const Topology& measured);

// Nothing where there is no file. Errors (kInvalidArgument) name the file and the line: another key, bad syntax,
// values out of range, other dimensions than `topology`, numbers missing.
Result<std::optional<Topology>> read_calibration(const std::string& path, uint64_t key, const Topology& topology);
// Makes the folders that are missing. Errors (kSystemError) name the file.
Status write_calibration(const std::string& path, uint64_t key, const Topology& measured);

}  // namespace trestle
