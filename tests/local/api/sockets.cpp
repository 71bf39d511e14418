#include "local/api/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

namespace api {

namespace {

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Listener::Listener(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  // After the listener is closed, connections that it accepted do not keep the port from others. A second listener is
  // still refused.
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = loopback(port);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd_, generic, size) != 0 || listen(fd_, 64) != 0 || getsockname(fd_, generic, &size) != 0) {
    close(fd_);
    fd_ = -1;
    return;
  }
  port_ = ntohs(address.sin_port);
}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

uint16_t free_port(int count) {
  for (;;) {
    std::vector<std::unique_ptr<Listener>> row;
    row.push_back(std::make_unique<Listener>());
    const uint16_t first = row[0]->port();
    while (static_cast<int>(row.size()) < count && row.back()->ok()) {
      row.push_back(std::make_unique<Listener>(static_cast<uint16_t>(first + row.size())));
    }
    if (row.back()->ok()) return first;
  }
}

int connect_to(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

void send_all(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return;  // the other end does not read any more
    at += static_cast<size_t>(n);
  }
}

Connections own_connections() {
  Connections connections;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int fd = std::stoi(entry.path().filename());
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    const bool mapped =
        peer.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&reinterpret_cast<const sockaddr_in6*>(&peer)->sin6_addr);
    connections.ipv4 += peer.ss_family == AF_INET || mapped ? 1 : 0;
    connections.ipv6 += peer.ss_family == AF_INET6 && !mapped ? 1 : 0;
  }
  return connections;
}

bool has_ipv6_loopback() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

}  // namespace api
