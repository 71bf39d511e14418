// Sockets on loopback for tests that need a port, occupy one, or connect to the library's ports. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace api {

// A listening socket on 127.0.0.1, closed at the end.
class Listener {
 public:
  explicit Listener(uint16_t port = 0);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  bool ok() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  uint16_t port() const { return port_; }

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
};

// A free port, or the first of `count` free ports in a row.
uint16_t free_port(int count = 1);
// A connection to 127.0.0.1, or -1.
int connect_to(uint16_t port);
void send_all(int fd, const std::string& bytes);

// The connected sockets of this process, by the family of their addresses.
struct Connections {
  int ipv4 = 0;
  int ipv6 = 0;
};
Connections own_connections();
// Whether a socket can listen on ::1.
bool has_ipv6_loopback();

}  // namespace api
