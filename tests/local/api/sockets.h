// Sockets on loopback for tests that need a port, hold one, or knock at the library's ones. One thread.
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

// A port that nothing listens on, or the first of `count` such ports in a row.
uint16_t free_port(int count = 1);
// A connection to 127.0.0.1, or -1.
int connect_to(uint16_t port);
void send_all(int fd, const std::string& bytes);

// Connected sockets of this process, by the family of their addresses.
struct Connections {
  int ipv4 = 0;
  int ipv6 = 0;
};
Connections own_connections();
// Whether something can listen on ::1.
bool has_ipv6_loopback();

}  // namespace api
