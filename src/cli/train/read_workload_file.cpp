#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "cli/train/workload_file.h"

namespace trestle {

Result<GradientWorkload> read_workload_file(const std::string& path) {
  static constexpr size_t kMostBytes = size_t{4} << 20;
  const auto failed = [&](const std::string& what) {
    return Error{Code::kInvalidArgument, "workload file " + path + ": " + what};
  };
  // O_NONBLOCK: opening a pipe must not block.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed(std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return failed("is not a file");
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) return parse_workload(text, path);
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMostBytes) return failed("is larger than 4 MiB");
  }
}

}  // namespace trestle
