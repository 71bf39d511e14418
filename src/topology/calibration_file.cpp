#include "topology/calibration_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/files/file_size.h"
#include "base/files/listing.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "topology/internal.h"

namespace trestle {
namespace {

constexpr std::string_view kEnding = ".calibration";
constexpr int kHeaderLines = 6;

std::string hex(uint64_t key) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(key));
  return text;
}

constexpr std::string_view kAnyFirst = "trestle-calibration ";  // of every version of the format
constexpr std::string_view kFirst = "trestle-calibration 2 ";

std::string header(uint64_t key, const CalibrationOrigin& origin) {
  return std::string(kFirst) + hex(key) + "\nmade " + date_text(origin.made_s) + "\nhosts " + origin.hosts +
         "\nhost-ids " + hex(origin.host_ids) + "\nkernel " + origin.kernel + "\nversion " + origin.version + "\n";
}

// As calibration_path() names them.
bool is_name(std::string_view name) {
  if (name.size() != 16 + kEnding.size() || !name.ends_with(kEnding)) return false;
  return name.find_first_not_of("0123456789abcdef") == 16;
}

Error bad(const std::string& path, int line, const std::string& what) {
  return Error{Code::kInvalidArgument, path + ":" + std::to_string(line) + ": " + what};
}

Error system_error(const std::string& path, const char* what) {
  return Error{Code::kSystemError, path + ": " + what + ": " + std::strerror(errno)};
}

Status check_measured(const Topology& measured, const Topology& topology, const std::string& path) {
  if (measured.dimensions.size() != topology.dimensions.size()) {
    return bad(path, kHeaderLines + 1,
               std::to_string(measured.dimensions.size()) + " dimensions, but the ranks have " +
                   std::to_string(topology.dimensions.size()));
  }
  for (size_t d = 0; d < measured.dimensions.size(); ++d) {
    const Dimension& dimension = measured.dimensions[d];
    const std::string where = "dimension " + std::to_string(d + 1) + ": ";
    if (dimension.size != topology.dimensions[d].size) {
      return bad(path, kHeaderLines + 1,
                 where + "size " + std::to_string(dimension.size) + ", but the ranks have " +
                     std::to_string(topology.dimensions[d].size));
    }
    if (dimension.bandwidth_mbps == 0) return bad(path, kHeaderLines + 1, where + "bandwidth_gbps: is missing");
    if (dimension.latency_ns == kNominalLatency) return bad(path, kHeaderLines + 1, where + "latency_ns: is missing");
  }
  return {};
}

Status replace_file(const std::string& path, const std::string& text) {
  constexpr std::string_view kNew = ".new";
  // Process numbers are unique neither among hosts nor among containers that share the folder.
  std::string beside = path + ".XXXXXX" + std::string(kNew);
  UniqueFd file = UniqueFd::open([&] { return ::mkostemps(beside.data(), kNew.size(), O_CLOEXEC); });
  if (!file) return system_error(beside, "cannot be made");
  if (::fchmod(file.get(), 0644) != 0 || !write_all(file.get(), text)) {
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

// A file's lines, one after the other.
class Lines {
 public:
  Lines(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  // The rest of the next line, which begins with that word.
  Result<std::string> behind(std::string_view word, const char* otherwise) {
    ++line_;
    const size_t end = text_.find('\n', at_);
    const std::string_view line = std::string_view(text_).substr(at_, end == std::string::npos ? end : end - at_);
    if (end == std::string::npos || !line.starts_with(word)) return bad(path_, line_, otherwise);
    at_ = end + 1;
    return std::string(line.substr(word.size()));
  }
  Result<uint64_t> number(std::string_view word, const char* otherwise) {
    const std::string digits = TRY(behind(word, otherwise));
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.size() != 16)
      return bad(path_, line_, otherwise);
    return number;
  }
  Result<int64_t> date(std::string_view word, const char* otherwise) {
    const std::string date = TRY(behind(word, otherwise));
    const std::optional<int64_t> time_s = time_of_date(date);
    if (!time_s) return bad(path_, line_, otherwise);
    return *time_s;
  }
  // The empty lines stand for those with the origin, so that line numbers in errors are those of the file.
  Result<Topology> topology() const {
    return parse_topology(std::string(static_cast<size_t>(line_), '\n') + text_.substr(at_), path_);
  }

 private:
  const std::string& path_;
  const std::string& text_;
  size_t at_ = 0;
  int line_ = 0;
};

// People read it in logs and on terminals, whoever has written the file.
std::string shown(std::string text) {
  constexpr size_t kMostBytes = 1024;
  if (text.size() > kMostBytes) text.resize(kMostBytes);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

Result<CalibrationOrigin> read_origin(Lines& lines) {
  CalibrationOrigin origin;
  origin.made_s = TRY(lines.date("made ", "the date is missing"));
  origin.hosts = shown(TRY(lines.behind("hosts ", "the hosts are missing")));
  origin.host_ids = TRY(lines.number("host-ids ", "the hosts' identities are missing"));
  origin.kernel = shown(TRY(lines.behind("kernel ", "the kernel's release is missing")));
  origin.version = shown(TRY(lines.behind("version ", "the library's version is missing")));
  return origin;
}

// Whatever ranks it is for.
Result<CalibrationOrigin> any_origin(Lines& lines) {
  TRY(lines.number(kFirst, "is not a calibration that this version can read"));
  return read_origin(lines);
}

Result<CalibrationOrigin> origin_of(const std::string& path) {
  const std::string text = TRY(read_topology_text(path));
  Lines lines(path, text);
  return any_origin(lines);
}

}  // namespace

uint64_t calibration_key(const Topology& topology, const std::vector<RankPlace>& places) {
  Hasher hasher;
  hasher.integer(topology.dimensions.size());
  for (const Dimension& dimension : topology.dimensions) {
    hasher.integer(static_cast<uint64_t>(dimension.size)).integer(static_cast<uint64_t>(dimension.kind));
    hasher.integer(static_cast<uint64_t>(dimension.transport)).string(interfaces_text(dimension));
  }
  for (const RankPlace& place : places) {
    const auto first = std::ranges::find(places, place.host_id, &RankPlace::host_id);
    hasher.string(place.hostname).integer(static_cast<uint64_t>(first - places.begin()));
  }
  return hasher.digest();
}

std::string calibration_path(const std::string& folder, uint64_t key) {
  return folder + "/" + hex(key) + std::string(kEnding);
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

Result<std::optional<KeptCalibration>> read_calibration(const std::string& path, uint64_t key, const Topology& topology,
                                                        const CalibrationOrigin& now) {
  if (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return std::optional<KeptCalibration>();
  const std::string text = TRY(read_topology_text(path));
  constexpr const char* kNotThese = "is not a calibration of these ranks on these hosts";
  Lines lines(path, text);
  if (TRY(lines.number(kFirst, kNotThese)) != key) return bad(path, 1, kNotThese);
  KeptCalibration kept{TRY(read_origin(lines)), {}, {}};
  kept.unfit = why_unfit(kept.origin, now);
  if (!kept.unfit.empty()) return std::optional<KeptCalibration>(std::move(kept));
  kept.measured = TRY(lines.topology());
  TRY(check_measured(kept.measured, topology, path));
  return std::optional<KeptCalibration>(std::move(kept));
}

Status write_calibration(const std::string& path, uint64_t key, const CalibrationOrigin& origin,
                         const Topology& measured) {
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failure);
  if (failure) return Error{Code::kSystemError, path + ": its folder cannot be made: " + failure.message()};
  return replace_file(path, header(key, origin) + to_json(measured));
}

Result<std::vector<std::string>> calibrations_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failure;
  if (!std::filesystem::exists(folder, failure) && !failure) return paths;
  for (const std::string& name : TRY(entries_of(folder))) {
    const std::string path = folder + "/" + name;
    if (is_name(name) && !std::filesystem::is_directory(path, failure)) paths.push_back(path);
  }
  std::ranges::sort(paths);
  return paths;
}

Result<bool> is_calibration(const std::string& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, failure))) return false;
  const OpenFile file = open_to_read(path);
  if (file == nullptr) return system_error(path, "cannot be read");
  char first[kAnyFirst.size()];
  const size_t got = std::fread(first, 1, sizeof first, file.get());
  return std::string_view(first, got) == kAnyFirst;
}

Result<KeptCalibration> read_any_calibration(const std::string& path) {
  const std::string text = TRY(read_topology_text(path));
  Lines lines(path, text);
  KeptCalibration kept{TRY(any_origin(lines)), {}, {}};
  kept.measured = TRY(lines.topology());
  return kept;
}

Result<bool> forget_calibration(const std::string& path, int64_t made_s) {
  if (made_s != 0) {
    const Result<CalibrationOrigin> origin = origin_of(path);
    if (!origin.ok() || origin.value().made_s != made_s) return false;
  }
  if (::unlink(path.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  return system_error(path, "cannot be removed");
}

}  // namespace trestle
