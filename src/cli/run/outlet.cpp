#include "cli/run/outlet.h"

#include <poll.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>

namespace trestle {
namespace {

constexpr size_t kMostKept = 1 << 18;

// A pipe that can be written takes PIPE_BUF bytes at once and whole; a longer write could block.
bool takes_more(int fd) {
  pollfd room{fd, POLLOUT, 0};
  return ::poll(&room, 1, 0) > 0;
}

}  // namespace

void Outlet::add(std::string_view lines) {
  if (dropping_) return;
  const bool idle = !pending();
  queue_.append(lines);
  if (idle) write_some();
}

bool Outlet::full() const {
  return queue_.size() - written_ >= kMostKept;
}

// Whole lines where one fits.
size_t Outlet::next_piece() const {
  const std::string_view rest = std::string_view(queue_).substr(written_);
  if (rest.size() <= PIPE_BUF) return rest.size();
  const size_t end = rest.rfind('\n', PIPE_BUF - 1);
  return end == std::string_view::npos ? PIPE_BUF : end + 1;
}

void Outlet::write_some() {
  while (pending() && takes_more(fd_)) {
    const ssize_t taken = ::write(fd_, queue_.data() + written_, next_piece());
    if (taken > 0) {
      written_ += static_cast<size_t>(taken);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return give_up(errno);
    }
  }
  if (pending() && written_ < kMostKept) return;
  queue_.erase(0, written_);
  written_ = 0;
}

// The ranks go on.
void Outlet::give_up(int number) {
  dropping_ = true;
  failure_ = number == EPIPE ? 0 : number;
  queue_.clear();
  written_ = 0;
}

bool Outlet::same_place(const Outlet& other) const {
  struct stat mine {};
  struct stat others {};
  if (fstat(fd_, &mine) != 0 || fstat(other.fd_, &others) != 0) return false;
  return mine.st_dev == others.st_dev && mine.st_ino == others.st_ino;
}

}  // namespace trestle
