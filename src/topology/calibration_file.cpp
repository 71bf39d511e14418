#include "topology/calibration_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/files/file_size.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "topology/internal.h"

namespace trestle {
namespace {

std::string hex(uint64_t key) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(key));
  return text;
}

std::string first_line(uint64_t key) {
  return "trestle-calibration 1 " + hex(key) + "\n";
}

Error bad(const std::string& path, int line, const std::string& what) {
  return Error{Code::kInvalidArgument, path + ":" + std::to_string(line) + ": " + what};
}

Error system_error(const std::string& path, const char* what) {
  return Error{Code::kSystemError, path + ": " + what + ": " + std::strerror(errno)};
}

Status check_measured(const Topology& measured, const Topology& topology, const std::string& path) {
  if (measured.dimensions.size() != topology.dimensions.size()) {
    return bad(path, 2,
               std::to_string(measured.dimensions.size()) + " dimensions, but the ranks have " +
                   std::to_string(topology.dimensions.size()));
  }
  for (size_t d = 0; d < measured.dimensions.size(); ++d) {
    const Dimension& dimension = measured.dimensions[d];
    const std::string where = "dimension " + std::to_string(d + 1) + ": ";
    if (dimension.size != topology.dimensions[d].size) {
      return bad(path, 2,
                 where + "size " + std::to_string(dimension.size) + ", but the ranks have " +
                     std::to_string(topology.dimensions[d].size));
    }
    if (dimension.bandwidth_mbps == 0) return bad(path, 2, where + "bandwidth_gbps: is missing");
    if (dimension.latency_ns == kNominalLatency) return bad(path, 2, where + "latency_ns: is missing");
  }
  return {};
}

Status replace_file(const std::string& path, const std::string& text) {
  const std::string beside = path + "." + std::to_string(::getpid()) + ".new";
  UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (file.get() < 0) return system_error(beside, "cannot be made");
  if (!write_all(file.get(), text)) {
    const Error error = system_error(beside, "cannot be written");
    ::unlink(beside.c_str());
    return error;
  }
  file.reset();
  if (::rename(beside.c_str(), path.c_str()) == 0) return {};
  const Error error = system_error(path, "cannot be replaced");
  ::unlink(beside.c_str());
  return error;
}

}  // namespace

uint64_t calibration_key(const Topology& topology, const std::vector<RankPlace>& places, uint32_t version) {
  Hasher hasher;
  hasher.integer(version).integer(topology.dimensions.size());
  for (const Dimension& dimension : topology.dimensions) {
    hasher.integer(static_cast<uint64_t>(dimension.size)).integer(static_cast<uint64_t>(dimension.kind));
    hasher.integer(static_cast<uint64_t>(dimension.transport)).string(interfaces_text(dimension));
  }
  for (const RankPlace& place : places) hasher.string(place.host_id);
  return hasher.digest();
}

std::string calibration_path(const std::string& folder, uint64_t key) {
  return folder + "/" + hex(key) + ".calibration";
}

bool has_nominal(const Topology& topology) {
  return std::ranges::any_of(topology.dimensions, [](const Dimension& dimension) {
    return dimension.bandwidth_mbps == 0 || dimension.latency_ns == kNominalLatency;
  });
}

void fill_nominal(Topology& topology, const Topology& measured) {
  CHECK(topology.dimensions.size() == measured.dimensions.size(), "a calibration of other dimensions");
  const bool all_nominal = std::ranges::all_of(topology.dimensions, [](const Dimension& dimension) {
    return dimension.bandwidth_mbps == 0 && dimension.shared_resource.empty();
  });
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    Dimension& dimension = topology.dimensions[d];
    const Dimension& from = measured.dimensions[d];
    CHECK(dimension.size == from.size, "a calibration of dimensions of other sizes");
    if (dimension.bandwidth_mbps == 0) dimension.bandwidth_mbps = from.bandwidth_mbps;
    if (dimension.latency_ns == kNominalLatency) dimension.latency_ns = from.latency_ns;
    if (!all_nominal) continue;
    dimension.shared_resource = from.shared_resource;
    dimension.shared_ps_per_byte = from.shared_ps_per_byte;
  }
}

Result<std::optional<Topology>> read_calibration(const std::string& path, uint64_t key, const Topology& topology) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::optional<Topology>();
  const std::string text = TRY(read_topology_text(path));
  const std::string line = first_line(key);
  if (!text.starts_with(line)) return bad(path, 1, "is not a calibration of these ranks on these hosts");
  // The empty first line stands for the line with the key, so that line numbers in errors are those of the file.
  const Topology measured = TRY(parse_topology("\n" + text.substr(line.size()), path));
  TRY(check_measured(measured, topology, path));
  return std::optional<Topology>(measured);
}

Status write_calibration(const std::string& path, uint64_t key, const Topology& measured) {
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failure);
  if (failure) return Error{Code::kSystemError, path + ": its folder cannot be made: " + failure.message()};
  return replace_file(path, first_line(key) + to_json(measured));
}

}  // namespace trestle
