// The open descriptors of this process, for tests that compare them before and after. Any thread.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

namespace trestle {

// What each is, so that a failure says which one was left. Its own is not among them.
inline std::multiset<std::string> open_descriptors() {
  std::multiset<std::string> kinds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    // Others may rename the files that this process has inherited.
    const bool inherited = to.starts_with('/') && !to.starts_with("/memfd:");
    if (!gone && !to.ends_with("/fd")) kinds.insert(inherited ? "a file" : to.substr(0, to.find(":[")));
  }
  return kinds;
}

}  // namespace trestle
