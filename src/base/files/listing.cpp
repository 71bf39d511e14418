#include "base/files/listing.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/unique_fd.h"

namespace trestle {

namespace {

UniqueFd open_path(const std::string& path, int flags) {
  return UniqueFd::open([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); });
}

// What `make` does with the descriptor; its result owns it then.
template <class F>
auto give(UniqueFd fd, F make) {
  auto* const made = fd ? make(fd.get()) : nullptr;
  if (made != nullptr) fd.release();
  return made;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

OpenFile open_to_read(const std::string& path) {
  return OpenFile(give(open_path(path, 0), [](int fd) { return ::fdopen(fd, "r"); }));
}

Result<std::vector<std::string>> entries_of(const std::string& folder) {
  const std::unique_ptr<DIR, CloseFolder> open(give(open_path(folder, O_DIRECTORY), ::fdopendir));
  if (open == nullptr) return Error{Code::kSystemError, folder + " cannot be read: " + std::strerror(errno)};
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace trestle
