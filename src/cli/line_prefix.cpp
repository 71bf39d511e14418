#include "cli/line_prefix.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace trestle {
namespace {

constexpr size_t kLongestLine = 1 << 20;

}  // namespace

void LinePrefix::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    partial_.append(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (end == std::string_view::npos && partial_.size() < kLongestLine) return;
    put(partial_);
    partial_.clear();
  }
}

void LinePrefix::end() {
  if (!partial_.empty()) put(partial_);
  partial_.clear();
}

void LinePrefix::put(std::string_view line) {
  std::string text = prefix_;
  text.append(line).push_back('\n');
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t written = write(to_fd_, text.data() + at, text.size() - at);
    if (written > 0) {
      at += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      pollfd room{to_fd_, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return;  // nobody reads: the ranks go on
    }
  }
}

}  // namespace trestle
