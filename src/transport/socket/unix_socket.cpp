#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "transport/socket/socket.h"
#include "transport/socket/system_error.h"

namespace trestle {
namespace {

struct UnixName {
  sockaddr_un address{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<UnixName> abstract_name(std::string_view name) {
  UnixName result;
  if (name.empty() || name.size() > sizeof result.address.sun_path - 1)
    return Error{Code::kInvalidArgument, "the name of an abstract Unix socket has 1 to 107 bytes"};
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

Result<UniqueFd> unix_socket(int type) {
  UniqueFd fd = UniqueFd::open([type] { return ::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!fd) return socket_error("socket(AF_UNIX)");
  return fd;
}

constexpr size_t kControlBytes = CMSG_SPACE(kMostDescriptors * sizeof(int));

}  // namespace

std::string fresh_unix_name(const char* start, const std::string& job, int32_t rank) {
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) nonce = reinterpret_cast<uintptr_t>(&job);
  std::array<char, 100> name;
  std::snprintf(name.data(), name.size(), "%s-%.16s-%d-%d-%016llx", start, job.c_str(), rank, getpid(),
                static_cast<unsigned long long>(nonce));
  return name.data();
}

Result<UniqueFd> listen_unix(std::string_view name, int backlog) {
  const UnixName address = TRY(abstract_name(name));
  UniqueFd fd = TRY(unix_socket(SOCK_STREAM));
  if (::bind(fd.get(), address.get(), address.length) != 0) return socket_error("bind of a Unix socket");
  if (::listen(fd.get(), backlog) != 0) return socket_error("listen on a Unix socket");
  return fd;
}

Result<UniqueFd> connect_unix(std::string_view name) {
  const UnixName address = TRY(abstract_name(name));
  UniqueFd fd = TRY(unix_socket(SOCK_STREAM));
  if (::connect(fd.get(), address.get(), address.length) == 0) return fd;
  if (errno == EAGAIN || errno == EINTR) return UniqueFd();
  return socket_error("connect to a Unix socket");
}

Result<PeerProcess> peer_process(int fd) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return socket_error("SO_PEERCRED");
  return PeerProcess{credentials.pid, credentials.uid, credentials.gid};
}

bool peer_has_same_user(int fd) {
  const Result<PeerProcess> process = peer_process(fd);
  return process.ok() && process.value().uid == ::geteuid();
}

Result<size_t> send_with_descriptors(int fd, std::span<const std::byte> data, std::span<const int> descriptors) {
  CHECK(!data.empty() && descriptors.size() <= kMostDescriptors, "descriptors travel with data, at most 16 at a time");
  iovec vector{const_cast<std::byte*>(data.data()), data.size()};
  alignas(cmsghdr) std::byte control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    const ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return socket_error("send of descriptors");
  }
}

Result<size_t> receive_with_descriptors(int fd, std::span<std::byte> data, std::vector<UniqueFd>& descriptors) {
  CHECK(!data.empty(), "nothing can be received into an empty span");
  descriptors.reserve(descriptors.size() + kMostDescriptors);  // without room for them nothing is received
  iovec vector{data.data(), data.size()};
  alignas(cmsghdr) std::byte control[kControlBytes] = {};
  msghdr message{};
  ssize_t n;
  const NoFork whole;  // no fork before the received descriptors have an owner
  do {
    message = {};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno == EAGAIN) return size_t{0};
    return socket_error("receive of descriptors");
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
      descriptors.emplace_back(descriptor);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) descriptors.emplace_back();
  return n == 0 ? kEndOfStream : static_cast<size_t>(n);
}

// Binding an empty name asks the kernel to choose one.
Result<DatagramSocket> open_datagrams() {
  DatagramSocket made{TRY(unix_socket(SOCK_DGRAM)), ""};
  UnixName name;
  name.address.sun_family = AF_UNIX;
  name.length = sizeof name.address.sun_family;
  if (::bind(made.fd.get(), name.get(), name.length) != 0) return socket_error("bind of a Unix socket");
  name.length = sizeof name.address;
  if (::getsockname(made.fd.get(), reinterpret_cast<sockaddr*>(&name.address), &name.length) != 0)
    return socket_error("getsockname");
  made.name.assign(name.address.sun_path + 1, name.length - offsetof(sockaddr_un, sun_path) - 1);
  return made;
}

void ring_datagram(int fd, std::string_view name) {
  const Result<UnixName> address = abstract_name(name);
  if (!address.ok()) return;
  (void)::sendto(fd, nullptr, 0, MSG_NOSIGNAL | MSG_DONTWAIT, address.value().get(), address.value().length);
}

void drain_datagrams(int fd) {
  constexpr int kMost = 64;  // a stranger may send as fast as this thread reads
  std::byte none;
  for (int i = 0; i < kMost && ::recv(fd, &none, sizeof none, MSG_DONTWAIT) >= 0; ++i) {
  }
}

}  // namespace trestle
