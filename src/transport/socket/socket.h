// Stream sockets: TCP over IPv4 and IPv6, abstract Unix sockets, and addresses. The library connects
// and moves bytes through these functions. A few special system calls are made elsewhere: TCP_INFO, a peek, a socket
// pair.
//
// Plain functions over descriptors that the caller owns; any thread, one at a time per descriptor. Every socket made
// here is nonblocking and close-on-exec. No call raises SIGPIPE. Functions whose name ends in `_before` block (poll)
// until a time limit. No other function blocks. Errors:
// kRemoteError when the peer is gone or refuses, kTimeout, kAborted, kInvalidArgument for texts and names, kSystemError
// for the rest. Error messages give the system's reason; callers add the name of the peer.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text/value_text.h"
#include "base/unique_fd.h"

namespace trestle {

// ---- Addresses

enum class AddressFamily : uint8_t { kAny, kIpv4, kIpv6 };

// "", "auto", "AF_INET", "AF_INET6": the values of TRESTLE_SOCKET_FAMILY.
Result<AddressFamily> parse_family(std::string_view text);

// An IPv4 or IPv6 address with a port.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  AddressFamily family() const;  // kAny when empty
  uint16_t port() const;
  void set_port(uint16_t port);
  bool is_loopback() const;  // 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104
  bool operator==(const SocketAddress& other) const;
};

// Numeric only: "10.0.0.1:5000", "[fe80::1%eth0]:5000".
Result<SocketAddress> parse_address(std::string_view text);
// A text that parse_address can read.
std::string format_address(const SocketAddress& address);
// The address without the port: equal for all connections of a host.
std::string format_host(const SocketAddress& address);
// Splits "host:port" or "[v6]:port" without looking the host up. The port must be 1..65535.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
Result<HostPort> parse_host_port(std::string_view text);
// A text that parse_host_port can read. The host may have its brackets already.
std::string format_host_port(const HostPort& place);

// The numeric address of a host, without a port. Addresses of hosts are compared as this and never as texts, which have
// several forms: "::1" and "[::1]", "::ffff:10.0.0.1" and "10.0.0.1".
class HostAddress {
 public:
  HostAddress() = default;  // none: equal to none, and to no address
  // None of an empty address and of a Unix socket's. An IPv4 address that is mapped into IPv6 becomes the IPv4 address.
  // The interface ("%eth0") counts only in link-local addresses, which mean something else on each interface.
  HostAddress(const SocketAddress& address);

  bool is_known() const { return address_.length != 0; }
  AddressFamily family() const { return address_.family(); }
  const SocketAddress& address() const { return address_; }  // port 0
  std::string text() const;                                  // without brackets: "::1", "fe80::1%eth0"; "": none
  bool operator==(const HostAddress& other) const = default;

 private:
  SocketAddress address_;
};
// "10.0.0.1", "::1", "[::1]", "fe80::1%eth0". kInvalidArgument: a name, a port, nonsense.
Result<HostAddress> parse_host(std::string_view text);

// ---- TCP

struct ListenOptions {
  PortRange ports;
  std::string port_needs = {};  // ends the sentence about a range without a free port: what it must have room for
  int backlog = 512;
};

struct Listener {
  UniqueFd fd;
  SocketAddress address;  // what peers connect to: the interface's address and the port
};

// Listens at the first of the addresses that can be bound, on the first free port of the range; their own ports do not
// count. kSystemError: the range has no free port there, which is no reason to be reached at another address; or none
// can be bound.
Result<Listener> listen_tcp(std::span<const SocketAddress> addresses, const ListenOptions& options);
// Listens on exactly this address; the wildcard address is allowed, port 0 is any.
Result<Listener> listen_tcp_at(const SocketAddress& address, int backlog = 512);

// Where a connection leaves this host. Empty: the kernel's choice.
struct ConnectFrom {
  SocketAddress address;  // its port does not count
  std::string interface;  // not for connections within this host, which use no interface
};
// A connecting socket. When it polls writable, finish_connect tells whether it is connected or has failed.
// kInvalidUsage: the address is this host's own, and its loopback interface is down.
Result<UniqueFd> start_connect(const SocketAddress& address, const ConnectFrom& from = {});
// All data of a connection leaves over this interface, and only what comes over it is taken. False: the system forbids
// it, or there is no such interface.
bool bind_to_interface(int fd, const std::string& interface);
// true: connected; false: not yet. kRemoteError: refused, unreachable.
Result<bool> finish_connect(int fd);
// Of an error of the two above: nobody listens there, and the host said so.
bool is_refusal(const Error& error);
// Of an error of any connection: the kernel has given it up because nothing comes from the other host, or no way leads
// there any more. That says nothing about the process there.
bool is_unreachable(const Error& error);
// The next waiting connection; an empty UniqueFd when there is none. Skips connections that died in the queue. Running
// out of descriptors or memory is an error, but the listener stays usable.
Result<UniqueFd> accept_connection(int listener_fd);

struct TcpOptions {
  bool no_delay = true;
  std::string congestion;     // "": the system's; an unknown one is ignored: see the return value
  int keepalive_idle_s = 10;  // 0: off. After this long a silence three probes, 5 s apart
  int user_timeout_ms = 0;    // 0: the system's. How long sent data may stay unacknowledged
  int send_buffer_bytes = 0;  // 0: the system's automatic size
  int receive_buffer_bytes = 0;
  // 0: the system's. With this many unsent bytes the socket takes no more, so that more urgent data can be written
  // first.
  int unsent_bytes = 0;
};
// False when the congestion control was not available; everything else is best effort.
bool set_tcp_options(int fd, const TcpOptions& options);
// TcpOptions::unsent_bytes, of an open connection.
void set_unsent_limit(int fd, uint64_t bytes);
// What the kernel has counted of a connection's sending (TCP_INFO). Zeros: nothing yet, or it is too old to tell.
struct SendingCounts {
  uint64_t acked_bytes = 0;  // since the connection was made
  // In ticks of the kernel, of 1 to 10 ms: how long something was not acknowledged although the peer had room for it,
  // and how long the peer had none.
  uint64_t sending_us = 0;
  uint64_t waiting_us = 0;
  uint64_t unsent_bytes = 0;  // that it holds now and has not sent
};
SendingCounts sending_counts(int fd);
// TcpOptions::user_timeout_ms, of any socket, as often as wanted.
void set_user_timeout(int fd, int milliseconds);

SocketAddress local_address(int fd);  // empty (length 0) when unknown
SocketAddress peer_address(int fd);

// ---- Bytes (TCP and Unix)

inline constexpr size_t kEndOfStream = std::numeric_limits<size_t>::max();

// Bytes moved; 0: would block. receive_*: kEndOfStream when the peer has ended its side. Spans must not be empty.
Result<size_t> send_bytes(int fd, std::span<const std::byte> data);
Result<size_t> receive_bytes(int fd, std::span<std::byte> data);
// Uses at most kMostVectors entries; the rest is for the next call.
inline constexpr size_t kMostVectors = 1024;
Result<size_t> send_vectors(int fd, std::span<const iovec> vectors);
Result<size_t> receive_vectors(int fd, std::span<const iovec> vectors);
// Sends no more: the peer reads to the end and then sees the end of the stream.
void end_sending(int fd);
// The kernel acknowledges what has been read at once, and not up to 40 ms later in the hope of data to send. For the
// last bytes of a conversation, whose sender waits for that.
void acknowledge_now(int fd);

// ---- Abstract Unix stream sockets: names without a file, so nothing is left behind. They reach one network namespace.

struct PeerProcess {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// A name that cannot be guessed beforehand. `start` helps people who list sockets.
std::string fresh_unix_name(const char* start, const std::string& job, int32_t rank);
// `name` without the leading zero byte, at most 107 bytes. A name in use: kSystemError.
Result<UniqueFd> listen_unix(std::string_view name, int backlog = 512);
// Connected at once, or kRemoteError when no socket listens. An empty UniqueFd: the listener's queue is full, try
// again.
Result<UniqueFd> connect_unix(std::string_view name);
// The process that connected or listens (SO_PEERCRED), as the kernel recorded it.
Result<PeerProcess> peer_process(int fd);
// That process belongs to the user of this one. False also when that cannot be known.
bool peer_has_same_user(int fd);

// Descriptors travel with the first byte of `data`. At most kMostDescriptors.
inline constexpr size_t kMostDescriptors = 16;
Result<size_t> send_with_descriptors(int fd, std::span<const std::byte> data, std::span<const int> descriptors);
// Received descriptors (close-on-exec) are appended. An empty one: this process has no free number for one that came,
// or there were more than kMostDescriptors.
Result<size_t> receive_with_descriptors(int fd, std::span<std::byte> data, std::vector<UniqueFd>& descriptors);

// ---- Empty datagrams between processes of one network namespace, used as doorbells.

// A nonblocking socket with an abstract name that the kernel has chosen: a few bytes, none of them zero.
struct DatagramSocket {
  UniqueFd fd;
  std::string name;
};
Result<DatagramSocket> open_datagrams();
// Sends a datagram from `fd`, at once or not at all. A socket that is gone needs none; one whose queue is full has been
// rung already.
void ring_datagram(int fd, std::string_view name);
// Drops received datagrams; not all of them if a stranger sends without end.
void drain_datagrams(int fd);

// ---- Blocking calls with a time limit, for bootstrap

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct WaitLimit {
  int64_t deadline_ns = kNever;                // monotonic_clock() time
  const std::atomic<bool>* aborted = nullptr;  // checked every 20 ms; may be null
};

// Sleeps for pause_ns, unless the limit is reached first: kTimeout, kAborted.
Status pause_before(int64_t pause_ns, const WaitLimit& limit);
// `events`: POLLIN, POLLOUT. Returns when poll(2) reports anything; kTimeout, kAborted.
Status wait_before(int fd, short events, const WaitLimit& limit);
Status send_all_before(int fd, std::span<const std::byte> data, const WaitLimit& limit);
// If the stream ends before the last byte: kRemoteError ("closed the connection").
Status receive_all_before(int fd, std::span<std::byte> data, const WaitLimit& limit);
Result<UniqueFd> accept_before(int listener_fd, const WaitLimit& limit);
// Tries every address in turn, again and again until the limit while no socket listens: the other side may start later.
Result<UniqueFd> connect_before(std::span<const SocketAddress> addresses, const WaitLimit& limit);

}  // namespace trestle
