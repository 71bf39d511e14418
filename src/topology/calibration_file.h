// Calibration files: measured link speeds of certain ranks on certain hosts, kept in a folder for the next job.
//
// A file holds one line with its key, followed by a topology file. The key says which hosts and ranks the file is for.
// The file is also named after its key, but a reader checks the key inside, so it refuses a file that was copied, cut
// or edited. The functions are pure except for the files that they name. Any thread may call them. A file is written
// under another name in the same folder and then renamed, so readers never see an incomplete one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// Equal keys mean: equal hosts with equal ranks, and dimensions of equal sizes, kinds, transports and interfaces, and
// the same version (TRESTLE_VERSION_CODE). A host that was restarted counts as another host.
uint64_t calibration_key(const Topology& topology, const std::vector<RankPlace>& places, uint32_t version);
std::string calibration_path(const std::string& folder, uint64_t key);

// Whether a calibration could add anything: some bandwidth or latency is nominal.
bool has_nominal(const Topology& topology);
// Fills in measured numbers where the topology has none. A measured shared resource belongs to a measured bandwidth: it
// is taken only where the topology gives neither a bandwidth nor a resource. The dimensions must have equal sizes
// (CHECK).
void fill_nominal(Topology& topology, const Topology& measured);

// Returns nothing if there is no file. Errors (kInvalidArgument) name the file and the line: another key, bad syntax,
// values out of range, other dimensions than `topology`, missing numbers.
Result<std::optional<Topology>> read_calibration(const std::string& path, uint64_t key, const Topology& topology);
// Creates missing folders. Errors (kSystemError) name the file.
Status write_calibration(const std::string& path, uint64_t key, const Topology& measured);

}  // namespace trestle
