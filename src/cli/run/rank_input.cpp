#include "cli/run/rank_input.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace trestle {

Result<RankInput> RankInput::open() {
  RankInput input;
  if (isatty(STDIN_FILENO) == 0) return input;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kSystemError, std::string("pipe2: ") + std::strerror(errno)};
  input.pipe_.reset(ends[0]);
  input.to_.reset(ends[1]);
  fcntl(input.to_.get(), F_SETFL, O_NONBLOCK);
  return input;
}

void RankInput::add_to(std::vector<pollfd>& fds) const {
  if (!to_) return;
  const bool reading = kept_.empty() && !at_end_ && !in_background_;
  if (reading) fds.push_back({STDIN_FILENO, POLLIN, 0});
  if (!kept_.empty()) fds.push_back({to_.get(), POLLOUT, 0});
}

// A process in the background must not read: SIGTTIN would not stop it here, so the read would be an error.
void RankInput::read_terminal() {
  pollfd terminal{STDIN_FILENO, POLLIN, 0};
  if (::poll(&terminal, 1, 0) <= 0) return;
  in_background_ = tcgetpgrp(STDIN_FILENO) != getpgrp();
  if (in_background_) return;
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (got > 0) kept_.assign(buffer.data(), static_cast<size_t>(got));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) at_end_ = true;
}

void RankInput::pass_on() {
  if (!to_) return;
  if (kept_.empty() && !at_end_ && !in_background_) read_terminal();
  if (kept_.empty() && at_end_) return to_.reset();
  if (kept_.empty()) return;
  const ssize_t taken = ::write(to_.get(), kept_.data(), kept_.size());
  if (taken > 0) kept_.erase(0, static_cast<size_t>(taken));
  if (taken < 0 && errno != EAGAIN && errno != EINTR) to_.reset();  // the reader is gone
}

void RankInput::end() {
  to_.reset();
}

}  // namespace trestle
