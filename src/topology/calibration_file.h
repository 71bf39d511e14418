// Calibration files: measured link speeds of certain ranks on certain hosts, kept in a folder for the next job.
//
// A file says first for which ranks it is (its key), then its origin, line by line; a topology file follows. It is
// named after its key, which follows from what a later job has again: dimensions and names of hosts. So a new
// measurement replaces the old one, and a reader finds a file that it must not use, and can say why. The key inside is
// checked, so a file that was copied, cut or edited is refused. The functions are pure except for the files that they
// name. Any thread may call them. A file is written under another name in the same folder and then renamed, so readers
// never see an incomplete one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// Equal keys mean: hosts of equal names with equal ranks, and dimensions of equal sizes, kinds, transports and
// interfaces.
uint64_t calibration_key(const Topology& topology, const std::vector<RankPlace>& places);
std::string calibration_path(const std::string& folder, uint64_t key);

// When, where and by what a calibration was made. As read from a file, texts are printable ASCII of at most 1 KiB.
struct CalibrationOrigin {
  int64_t made_s = 0;     // seconds since 1970, UTC
  std::string hosts;      // names in the order of their first ranks: "node1 node2"
  uint64_t host_ids = 0;  // of all ranks, hashed. A host that was restarted counts as another host
  std::string kernel;     // release, of the host that keeps the file
  std::string version;    // of the library: "0.9.0"
};
// Of a calibration that is made now, on a host of these ranks; version: TRESTLE_VERSION_CODE.
CalibrationOrigin calibration_origin(const std::vector<RankPlace>& places, uint32_t version);

// Cables, cards, drivers and neighbours on the network change within weeks, and measuring takes three seconds.
inline constexpr int64_t kCalibrationDays = 30;
// Why figures of that origin are not for a job whose own calibration would be of origin `now`; "": they are. The clock
// of the host that wrote the file may be ahead by a day.
std::string why_unfit(const CalibrationOrigin& kept, const CalibrationOrigin& now);
// "2026-11-28T12:20:44Z", and back; nothing: it is no such text.
std::string date_text(int64_t time_s);
std::optional<int64_t> time_of_date(const std::string& text);

// Whether a calibration could add anything: some bandwidth or latency is nominal.
bool has_nominal(const Topology& topology);
// Fills in measured numbers where the topology has none. A measured shared resource belongs to a measured bandwidth: it
// is taken only where the topology gives neither a bandwidth nor a resource. The dimensions must have equal sizes
// (CHECK).
void fill_nominal(Topology& topology, const Topology& measured);

struct KeptCalibration {
  CalibrationOrigin origin;
  std::string unfit;  // as why_unfit() says
  Topology measured;  // empty if unfit: another version's numbers may mean something else
};
// Returns nothing if there is no file, nor can be one as no folder holds it. Errors (kInvalidArgument) name the file
// and the line: another key, bad syntax, values out of range, other dimensions than `topology`, missing numbers.
Result<std::optional<KeptCalibration>> read_calibration(const std::string& path, uint64_t key, const Topology& topology,
                                                        const CalibrationOrigin& now);
// Creates missing folders. Errors (kSystemError) name the file.
Status write_calibration(const std::string& path, uint64_t key, const CalibrationOrigin& origin,
                         const Topology& measured);

// The files in a folder that are named like calibrations, as paths in their order. A folder that does not exist has
// none; errors (kSystemError): it cannot be read.
Result<std::vector<std::string>> calibrations_in(const std::string& folder);
// Whether it is a regular file that begins like a calibration, of whatever version. Errors (kSystemError): it cannot be
// read.
Result<bool> is_calibration(const std::string& path);
// Whoever they are for; never unfit. Errors as of read_calibration.
Result<KeptCalibration> read_any_calibration(const std::string& path);
// Removes the file, but not one that was made at another time; made_s: of its origin, 0: whatever it is. Returns
// whether this call has removed it; it may be gone already. Errors (kSystemError) name the file.
Result<bool> forget_calibration(const std::string& path, int64_t made_s);

}  // namespace trestle
