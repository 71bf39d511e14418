#include "base/files/file_size.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace trestle {

uint64_t most_file_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

std::string file_size_text(uint64_t most_bytes) {
  constexpr uint64_t kShellUnit = 1024;
  return "files of this process have at most " + std::to_string(most_bytes) + " bytes (RLIMIT_FSIZE; ulimit -f " +
         std::to_string(most_bytes / kShellUnit) + ")";
}

bool has_room(int fd, size_t bytes) {
  const uint64_t most = most_file_bytes();
  struct stat info {};
  if (most == UINT64_MAX || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return true;
  const auto size = static_cast<uint64_t>(info.st_size);
  return size <= most && bytes <= most - size;
}

bool write_all(int fd, std::string_view text) {
  if (!has_room(fd, text.size())) {
    errno = EFBIG;
    return false;
  }
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<size_t>(put));
  }
  return true;
}

}  // namespace trestle
