#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "transport/socket/socket.h"
#include "transport/socket/system_error.h"

namespace trestle {
namespace {

constexpr int64_t kSliceMs = 20;          // how often the abort flag is checked
constexpr int64_t kRetryNs = 10'000'000;  // between two attempts to connect to a peer that does not listen yet

// Milliseconds until the limit, at most one slice, rounded up; the limit's own error once it is reached.
Result<int> next_slice_ms(const WaitLimit& limit) {
  if (limit.aborted != nullptr && limit.aborted->load(std::memory_order_relaxed))
    return Error{Code::kAborted, "aborted while waiting for another rank"};
  if (limit.deadline_ns == kNever) return static_cast<int>(kSliceMs);
  const int64_t left_ns = limit.deadline_ns - monotonic_clock().now_ns();
  if (left_ns <= 0) return Error{Code::kTimeout, "timed out while waiting for another rank"};
  return static_cast<int>(std::min<int64_t>(kSliceMs, (left_ns + 999'999) / 1'000'000));
}

// One attempt to reach one address. An unreachable one is kRemoteError.
Result<UniqueFd> connect_once(const SocketAddress& address, const WaitLimit& limit) {
  UniqueFd fd = TRY(start_connect(address));
  for (;;) {
    TRY(wait_before(fd.get(), POLLOUT, limit));
    if (TRY(finish_connect(fd.get()))) return fd;
  }
}

}  // namespace

Status pause_before(int64_t pause_ns, const WaitLimit& limit) {
  const int64_t until = monotonic_clock().now_ns() + pause_ns;
  while (true) {
    const int slice_ms = TRY(next_slice_ms(limit));
    const int64_t left_ns = until - monotonic_clock().now_ns();
    if (left_ns <= 0) return {};
    (void)::poll(nullptr, 0, static_cast<int>(std::min<int64_t>(slice_ms, left_ns / 1'000'000 + 1)));
  }
}

Status wait_before(int fd, short events, const WaitLimit& limit) {
  for (;;) {
    const int slice_ms = TRY(next_slice_ms(limit));
    pollfd item{fd, events, 0};
    const int ready = ::poll(&item, 1, slice_ms);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return socket_error("poll");
  }
}

Status send_all_before(int fd, std::span<const std::byte> data, const WaitLimit& limit) {
  while (!data.empty()) {
    const size_t n = TRY(send_bytes(fd, data));
    data = data.subspan(n);
    if (n == 0) TRY(wait_before(fd, POLLOUT, limit));
  }
  return {};
}

Status receive_all_before(int fd, std::span<std::byte> data, const WaitLimit& limit) {
  while (!data.empty()) {
    const size_t n = TRY(receive_bytes(fd, data));
    if (n == kEndOfStream) return Error{Code::kRemoteError, "the peer closed the connection"};
    data = data.subspan(n);
    if (n == 0) TRY(wait_before(fd, POLLIN, limit));
  }
  return {};
}

Result<UniqueFd> accept_before(int listener_fd, const WaitLimit& limit) {
  for (;;) {
    UniqueFd fd = TRY(accept_connection(listener_fd));
    if (fd) return fd;
    TRY(wait_before(listener_fd, POLLIN, limit));
  }
}

Result<UniqueFd> connect_before(std::span<const SocketAddress> addresses, const WaitLimit& limit) {
  Error last{Code::kInvalidArgument, "there is no address to connect to"};
  if (addresses.empty()) return last;
  for (;;) {
    for (const SocketAddress& address : addresses) {
      Result<UniqueFd> fd = connect_once(address, limit);
      if (fd.ok()) return fd;
      const Code code = fd.error().code;
      if (code == Code::kTimeout) return Error{code, "timed out while connecting to " + format_address(address)};
      if (code == Code::kAborted) return fd;
      last = Error{code, fd.error().message + " (" + format_address(address) + ")"};
    }
    if (last.code != Code::kRemoteError) return last;
    const Status paused = pause_before(kRetryNs, limit);
    if (!paused.ok()) return Error{paused.error().code, paused.error().message + "; last attempt: " + last.message};
  }
}

}  // namespace trestle
