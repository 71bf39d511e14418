#include <algorithm>

#include "base/check.h"
#include "transport/socket/socket.h"
#include "transport/socket/system_error.h"

namespace trestle {
namespace {

// The result of a call as bytes moved. Repeats the call after EINTR.
template <class Call>
Result<size_t> moved(const char* what, bool receiving, Call call) {
  for (;;) {
    const ssize_t n = call();
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return receiving ? kEndOfStream : size_t{0};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return socket_error(what);
  }
}

msghdr message_of(std::span<const iovec> vectors) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors.data());
  message.msg_iovlen = std::min(vectors.size(), kMostVectors);
  return message;
}

}  // namespace

Result<size_t> send_bytes(int fd, std::span<const std::byte> data) {
  CHECK(!data.empty(), "an empty span cannot be sent");
  return moved("send", false, [&] { return ::send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
}

Result<size_t> receive_bytes(int fd, std::span<std::byte> data) {
  CHECK(!data.empty(), "nothing can be received into an empty span");
  return moved("receive", true, [&] { return ::recv(fd, data.data(), data.size(), MSG_DONTWAIT); });
}

Result<size_t> send_vectors(int fd, std::span<const iovec> vectors) {
  const msghdr message = message_of(vectors);
  return moved("send", false, [&] { return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

Result<size_t> receive_vectors(int fd, std::span<const iovec> vectors) {
  msghdr message = message_of(vectors);
  return moved("receive", true, [&] { return ::recvmsg(fd, &message, MSG_DONTWAIT); });
}

void end_sending(int fd) {
  (void)::shutdown(fd, SHUT_WR);
}

}  // namespace trestle
