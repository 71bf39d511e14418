#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "topology/internal.h"
#include "topology/topology.h"

namespace trestle {

Result<Topology> parse_topology(const std::string& json, const std::string& source) {
  Topology topology;
  topology.dimensions = TRY(parse_json_dimensions(json, source));
  topology.reason = "topology file " + source;
  TRY(drop_single(topology, source));
  return topology;
}

Result<std::string> read_topology_text(const std::string& path) {
  static constexpr size_t kMostBytes = size_t{1} << 20;
  const auto failed = [&](const char* what) {
    return Error{Code::kInvalidArgument, "topology file " + path + ": " + what + ": " + std::strerror(errno)};
  };
  // O_NONBLOCK: opening a pipe must not block.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed("cannot be opened");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed("cannot be examined");
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalidArgument, "topology file " + path + ": is not a file"};
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("cannot be read");
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMostBytes) {
      return Error{Code::kInvalidArgument, "topology file " + path + ": is larger than 1 MiB"};
    }
  }
}

Result<Topology> read_topology_file(const std::string& path) {
  return parse_topology(TRY(read_topology_text(path)), path);
}

}  // namespace trestle
