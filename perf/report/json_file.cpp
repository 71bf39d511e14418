#include "perf/report/json_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace trestle::perf {
namespace {

// Writes `text` at `start`; the file ended at `end` before. If it becomes shorter, the rest is overwritten with empty
// lines before it is cut off. Returns 0 or the errno.
int put(int fd, size_t start, std::string text, size_t end) {
  const size_t wanted = start + text.size();
  if (wanted < end) text.append(end - wanted, '\n');
  std::string_view left = text;
  size_t at = start;
  while (!left.empty()) {
    const ssize_t written = pwrite(fd, left.data(), left.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    at += static_cast<size_t>(written);
    left.remove_prefix(static_cast<size_t>(written));
  }
  return ftruncate(fd, static_cast<off_t>(wanted)) == 0 ? 0 : errno;
}

}  // namespace

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

std::string JsonFile::append(const std::string& text, const std::string& tail) {
  const int fd = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  int problem = fd < 0 ? errno : put(fd, kept_, text + tail, end_);
  if (problem == 0) {
    kept_ += text.size();
    tail_ = tail;
    end_ = kept_ + tail.size();
  } else if (fd >= 0) {
    put(fd, kept_, tail_, 0);  // its space is allocated already, also on a full disk
  }
  if (fd >= 0 && close(fd) != 0 && problem == 0) problem = errno;
  return problem == 0 ? "" : "-J: '" + path_ + "' cannot be written: " + std::strerror(problem);
}

}  // namespace trestle::perf
