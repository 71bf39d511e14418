#include "base/files/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace trestle {

Result<std::string> read_text_file(const std::string& what, const std::string& path, size_t most_mib) {
  const auto wrong = [&](const std::string& why) {
    return Error{Code::kInvalidArgument, what + " " + path + ": " + why};
  };
  const auto failed = [&](const char* why) { return wrong(std::string(why) + ": " + std::strerror(errno)); };
  // O_NONBLOCK: opening a pipe must not block.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed("cannot be opened");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed("cannot be examined");
  if (!S_ISREG(status.st_mode)) return wrong("is not a file");
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("cannot be read");
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > most_mib << 20) return wrong("is larger than " + std::to_string(most_mib) + " MiB");
  }
}

}  // namespace trestle
