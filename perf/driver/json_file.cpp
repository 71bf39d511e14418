#include "perf/driver/json_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace trestle::perf {

std::string JsonFile::create(const std::string& path) {
  constexpr int kMostNames = 10000;
  std::string name = path;
  for (int next = 0; next < kMostNames; ++next) {
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) {
      close(fd);
      path_ = name;
      return "";
    }
    if (errno != EEXIST) break;
    name = path + "." + std::to_string(next);
  }
  return "-J: '" + name + "' cannot be written: " + std::strerror(errno);
}

std::string JsonFile::probe(const std::string& path) {
  JsonFile file;
  const std::string problem = file.create(path);
  if (file.is_open()) unlink(file.path().c_str());
  return problem;
}

std::string JsonFile::write(const std::string& text) const {
  std::FILE* file = std::fopen(path_.c_str(), "w");
  const bool fine = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  return fine && closed ? "" : "-J: '" + path_ + "' cannot be written: " + std::strerror(errno);
}

}  // namespace trestle::perf
