#include "torture/leaks.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace torture {
namespace {

bool starts_with(const std::string& text, const char* start) {
  return text.rfind(start, 0) == 0;
}

}  // namespace

std::vector<std::string> open_descriptors() {
  std::vector<std::string> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", failed)) {
    const std::string is = std::filesystem::read_symlink(entry.path(), failed).string();
    if (!failed && is.find("/proc/") == std::string::npos) found.push_back(is);
  }
  return found;
}

std::string left_behind(const std::vector<std::string>& open_before) {
  std::string text;
  for (const std::string& is : open_descriptors()) {
    const bool before = std::find(open_before.begin(), open_before.end(), is) != open_before.end();
    // A thread of the library, which the process keeps, may have a bell.
    if (before || starts_with(is, "anon_inode:")) continue;
    text += " descriptor of " + is + ";";
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("/memfd:");
    if (at != std::string::npos) text += " mapping of " + line.substr(at) + ";";
    if (line.find("/dev/shm/") != std::string::npos) text += " mapping of " + line.substr(line.find("/dev/shm/")) + ";";
  }
  return text;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) names.insert(entry.path().filename());
  return names;
}

}  // namespace torture
