#include "cli/run/outlet.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <utility>

namespace trestle {
namespace {

constexpr size_t kMostKept = 1 << 18;

// A pipe that polls writable takes PIPE_BUF bytes at once and as a whole.
bool takes_more(int fd) {
  pollfd room{fd, POLLOUT, 0};
  return ::poll(&room, 1, 0) > 0;
}

mode_t type_of(int fd) {
  struct stat place {};
  return fstat(fd, &place) == 0 ? place.st_mode & S_IFMT : 0;
}

// Excludes the master side of a pseudo-terminal, as a terminal emulator has it: opening that again would make a new
// terminal.
bool is_terminal(int fd) {
  unsigned number = 0;
  return isatty(fd) == 1 && ioctl(fd, TIOCGPTN, &number) != 0;
}

// Opens the file once more, with a nonblocking flag of its own, if writes to it may wait for a reader.
UniqueFd open_again(int fd) {
  const int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
  if (mode == O_RDONLY || !(type_of(fd) == S_IFIFO || is_terminal(fd))) return {};
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

Outlet::Outlet(int fd) : fd_(fd), unblocking_(open_again(fd_)), socket_(type_of(fd_) == S_IFSOCK) {}

Outlet::Outlet(UniqueFd fd)
    : owned_(std::move(fd)), fd_(owned_.get()), unblocking_(open_again(fd_)), socket_(type_of(fd_) == S_IFSOCK) {}

void Outlet::add(std::string_view lines) {
  if (dropping_) return;
  const bool idle = !pending();
  queue_.append(lines);
  if (idle) write_some();
}

bool Outlet::full() const {
  return queue_.size() - written_ >= kMostKept;
}

// The length of the next write: whole lines, if one fits.
size_t Outlet::next_piece() const {
  const std::string_view rest = std::string_view(queue_).substr(written_);
  if (rest.size() <= PIPE_BUF) return rest.size();
  const size_t end = rest.rfind('\n', PIPE_BUF - 1);
  return end == std::string_view::npos ? PIPE_BUF : end + 1;
}

ssize_t Outlet::write_piece() const {
  const char* const data = queue_.data() + written_;
  if (socket_) return ::send(fd_, data, next_piece(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return ::write(unblocking_ ? unblocking_.get() : fd_, data, next_piece());
}

bool Outlet::write_some() {
  bool any = false;
  while (pending() && takes_more(fd_)) {
    const ssize_t taken = write_piece();
    if (taken > 0) {
      written_ += static_cast<size_t>(taken);
      any = true;
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      give_up(errno);
    }
  }
  if (!pending() || written_ >= kMostKept) {
    queue_.erase(0, written_);
    written_ = 0;
  }
  return any;
}

void Outlet::drop() {
  queue_.clear();
  written_ = 0;
}

// The ranks continue.
void Outlet::give_up(int number) {
  dropping_ = true;
  failure_ = number == EPIPE ? 0 : number;
  drop();
}

bool Outlet::same_place(const Outlet& other) const {
  struct stat mine {};
  struct stat others {};
  if (fstat(fd_, &mine) != 0 || fstat(other.fd_, &others) != 0) return false;
  return mine.st_dev == others.st_dev && mine.st_ino == others.st_ino;
}

}  // namespace trestle
