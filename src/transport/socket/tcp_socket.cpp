#include <ifaddrs.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>
#include <memory>

#include "transport/socket/socket.h"
#include "transport/socket/system_error.h"

namespace trestle {
namespace {

void set_int(int fd, int level, int option, int value) {
  (void)setsockopt(fd, level, option, &value, sizeof value);
}

Result<UniqueFd> tcp_socket(const SocketAddress& address) {
  const int family = address.storage.ss_family;
  UniqueFd fd = UniqueFd::open([=] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
  if (!fd) return socket_error("socket");
  return fd;
}

// Whether a connection waits at the listener. Needs no descriptor.
bool has_waiting(int listener_fd) {
  const int error = errno;
  pollfd listener{listener_fd, POLLIN, 0};
  const bool waits = ::poll(&listener, 1, 0) != 0;
  errno = error;
  return waits;
}

// An empty descriptor: the port is in use.
Result<UniqueFd> bind_and_listen(const SocketAddress& address, int backlog) {
  UniqueFd fd = TRY(tcp_socket(address));
  // Connections of an earlier run that linger in TIME_WAIT must not block the port.
  set_int(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AddressFamily::kIpv6) set_int(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd.get(), address.get(), address.length) != 0) {
    if (errno == EADDRINUSE) return UniqueFd();
    return socket_error(("bind to " + format_address(address)).c_str());
  }
  if (::listen(fd.get(), backlog) != 0) {
    if (errno == EADDRINUSE) return UniqueFd();
    return socket_error(("listen on " + format_address(address)).c_str());
  }
  return fd;
}

}  // namespace

void acknowledge_now(int fd) {
  set_int(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
}

Result<Listener> listen_tcp_at(const SocketAddress& address, int backlog) {
  Listener listener;
  listener.fd = TRY(bind_and_listen(address, backlog));
  if (!listener.fd) return Error{Code::kSystemError, "bind to " + format_address(address) + ": the port is in use"};
  listener.address = local_address(listener.fd.get());
  return listener;
}

namespace {

Error full_range(const ListenOptions& options, const SocketAddress& address) {
  return Error{Code::kSystemError, "every port from " + std::to_string(options.ports.low) + " to " +
                                       std::to_string(options.ports.high) + " is in use at " + format_host(address) +
                                       (options.port_needs.empty() ? "" : ": " + options.port_needs)};
}

}  // namespace

Result<Listener> listen_tcp(std::span<const SocketAddress> addresses, const ListenOptions& options) {
  if (options.ports.low > options.ports.high)
    return Error{Code::kInvalidArgument, "the port range ends before it begins"};
  Error last{Code::kInternalError, "there is no address to listen at"};
  for (SocketAddress address : addresses) {
    bool in_use = true;
    for (uint32_t port = options.ports.low; port <= options.ports.high && in_use; ++port) {
      address.set_port(static_cast<uint16_t>(port));
      Result<UniqueFd> fd = bind_and_listen(address, options.backlog);
      if (!fd.ok()) {
        last = std::move(fd).error();
        in_use = false;
      } else if (fd.value()) {
        const SocketAddress bound = local_address(fd.value().get());
        return Listener{std::move(fd).value(), bound};
      }
    }
    if (in_use) return full_range(options, address);
  }
  return last;
}

namespace {

bool is_own(const SocketAddress& address) {
  if (address.is_loopback()) return true;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != address.storage.ss_family) continue;
    SocketAddress here = address;
    std::memcpy(&here.storage, item->ifa_addr, here.length);
    if (HostAddress(here) == address) return true;
  }
  return false;
}

// What a host sends to an address of its own goes over lo, whichever address that is. Where lo is down, as in a fresh
// network namespace, some of it fails and the rest is lost.
Status check_loopback(int fd, const SocketAddress& address) {
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (::ioctl(fd, SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP) != 0 || !is_own(address)) return {};
  return Error{Code::kInvalidUsage, "the loopback interface lo is down, over which this host reaches its own address " +
                                        format_host(address) + ": ip link set lo up"};
}

}  // namespace

bool bind_to_interface(int fd, const std::string& interface) {
  const auto length = static_cast<socklen_t>(interface.size());
  return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.data(), length) == 0;
}

Result<UniqueFd> start_connect(const SocketAddress& address, const ConnectFrom& from) {
  UniqueFd fd = TRY(tcp_socket(address));
  TRY(check_loopback(fd.get(), address));
  if (from.address.length != 0) {
    SocketAddress local = from.address;
    local.set_port(0);
    // The kernel chooses the port when it knows the other end, so that one port serves many.
    set_int(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (::bind(fd.get(), local.get(), local.length) != 0)
      return socket_error(("bind to " + format_address(local)).c_str());
  }
  if (!from.interface.empty()) (void)bind_to_interface(fd.get(), from.interface);
  if (::connect(fd.get(), address.get(), address.length) != 0 && errno != EINPROGRESS && errno != EINTR)
    return socket_error(("connect to " + format_address(address)).c_str());
  return fd;
}

Result<bool> finish_connect(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return socket_error("getsockopt");
  if (error != 0) return socket_error("connect", error);
  sockaddr_storage peer;
  length = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0) return true;
  if (errno == ENOTCONN) return false;
  return socket_error("connect");
}

bool is_refusal(const Error& error) {
  return error.message.ends_with(std::generic_category().message(ECONNREFUSED));
}

bool is_unreachable(const Error& error) {
  constexpr int kReasons[] = {ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN};
  return std::any_of(std::begin(kReasons), std::end(kReasons),
                     [&](int number) { return error.message.ends_with(std::generic_category().message(number)); });
}

Result<UniqueFd> accept_connection(int listener_fd) {
  for (;;) {
    UniqueFd fd =
        UniqueFd::open([=] { return ::accept4(listener_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (fd) return fd;
    switch (errno) {
      case EAGAIN:
        return UniqueFd();
      case EINTR:
      case ECONNABORTED:
      case EPROTO:
        continue;
      case EMFILE:
      case ENFILE:
        // The kernel takes a descriptor before it looks at the queue.
        if (!has_waiting(listener_fd)) return UniqueFd();
        return socket_error("accept");
      default:
        return socket_error("accept");
    }
  }
}

bool set_tcp_options(int fd, const TcpOptions& options) {
  if (options.no_delay) set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.keepalive_idle_s > 0) {
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, options.keepalive_idle_s);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  }
  if (options.user_timeout_ms > 0) set_user_timeout(fd, options.user_timeout_ms);
  if (options.send_buffer_bytes > 0) set_int(fd, SOL_SOCKET, SO_SNDBUF, options.send_buffer_bytes);
  if (options.unsent_bytes > 0) set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, options.unsent_bytes);
  if (options.receive_buffer_bytes > 0) set_int(fd, SOL_SOCKET, SO_RCVBUF, options.receive_buffer_bytes);
  if (options.congestion.empty()) return true;
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, options.congestion.data(),
                    static_cast<socklen_t>(options.congestion.size())) == 0;
}

void set_unsent_limit(int fd, uint64_t bytes) {
  set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(std::min<uint64_t>(bytes, INT_MAX)));
}

void set_user_timeout(int fd, int milliseconds) {
  set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds);
}

SocketAddress local_address(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) address.length = 0;
  return address;
}

SocketAddress peer_address(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) address.length = 0;
  return address;
}

}  // namespace trestle
