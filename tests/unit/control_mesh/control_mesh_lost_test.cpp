// A connection of the control mesh that the kernel has given up says that a host has vanished from the network, and
// nothing about the process there. One that the peer's kernel has ended says that the process is gone.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>

#include "base/clock.h"
#include "control_mesh/control_mesh.h"
#include "transport/socket/socket.h"
#include "transport/socket/system_error.h"

namespace trestle {
namespace {

struct VirtualClock : Clock {
  int64_t now_ns() override { return now; }
  int64_t now = 1000 * kMs;
};

struct Heard : ControlListener {
  void on_error(const Error& error, int32_t) override { errors.push_back(error.message); }
  void on_abort(int32_t) override {}
  void on_bye(int32_t, bool) override {}
  void on_letter(int32_t, const std::string&) override {}
  std::vector<std::string> errors;
};

// A connection over loopback, and a second handle of the mesh's end.
struct Connection {
  Connection() {
    SocketAddress any_port = parse_address("127.0.0.1:1").value();
    any_port.set_port(0);
    const Listener listener = listen_tcp_at(any_port).value();
    mesh = connect_before({&listener.address, 1}, {}).value();
    peer = accept_before(listener.fd.get(), {}).value();
    handle = UniqueFd::open([this] { return ::dup(mesh.get()); });
  }
  UniqueFd mesh;
  UniqueFd handle;
  UniqueFd peer;
};

// The mesh of rank 0 of two. Rank 1 is a pair of sockets that read nothing.
struct Mesh {
  explicit Mesh(int64_t heartbeat_ns) {
    std::vector<ControlConnection> to;
    std::vector<ControlConnection> from;
    to.push_back({1, std::move(out.mesh)});
    from.push_back({1, std::move(in.mesh)});
    mesh = ControlMesh::create({0, 2, heartbeat_ns, &clock, nullptr}, std::move(to), std::move(from)).value();
    mesh->start(&heard);
  }
  // Waits for an event, and reads it so much later.
  void poll_after(int64_t time_ns) {
    pollfd waiting{mesh->event_fd(), POLLIN, 0};
    ASSERT_GE(::poll(&waiting, 1, -1), 1);
    clock.now += time_ns;
    mesh->poll(clock.now);
  }
  void poll_until_failure() {
    while (heard.errors.empty()) poll_after(0);
  }

  VirtualClock clock;
  Connection out;
  Connection in;
  Heard heard;
  std::unique_ptr<ControlMesh> mesh;
};

// So much that neither kernel takes any more. The peer's window is closed then, and the kernel probes it.
void fill(int fd) {
  const std::array<std::byte, 65536> junk{};
  while (send_bytes(fd, junk).value() > 0) {
  }
}

// The mesh leaves stopped processes alone, so the kernel's patience must be shortened behind its back.
void lose_patience(const Connection& connection) {
  set_user_timeout(connection.handle.get(), 1);
}

TEST(LostConnection, SaysThatTheRankIsLostAndWhatIsKnown) {
  for (const int64_t heartbeat_ns : {int64_t{0}, 3'600'000 * kMs}) {
    Mesh of(heartbeat_ns);
    fill(of.out.handle.get());
    lose_patience(of.out);
    of.poll_after(12'345 * kMs);
    ASSERT_EQ(of.heard.errors.size(), 1u);
    EXPECT_EQ(of.heard.errors[0],
              "rank 1 is lost: its connection ended without a goodbye (receive: Connection timed out), and 127.0.0.1 "
              "was last heard from 12.3 s ago");
  }
}

// The kernel tells the reason once, to whichever call comes first.
TEST(LostConnection, IsKnownWhenASendLearnsOfIt) {
  Mesh of(0);
  fill(of.out.handle.get());
  of.mesh->send_letter(1, std::string(kMostLetterBytes, 'x'));  // waits for room, so the next call is a send
  lose_patience(of.out);
  of.poll_after(0);
  while (of.heard.errors.empty()) of.poll_after(0);
  EXPECT_EQ(of.heard.errors[0],
            "rank 1 is lost: its connection ended without a goodbye (send: Connection timed out), and 127.0.0.1 was "
            "last heard from 0.0 s ago");
}

TEST(EndedConnection, SaysThatTheRankDied) {
  for (const bool unread : {false, true}) {
    Mesh of(0);
    // A kernel that closes a socket with unread data resets the connection.
    if (unread) fill(of.out.handle.get());
    of.out.peer.reset();
    of.poll_until_failure();
    EXPECT_TRUE(of.heard.errors[0].starts_with("rank 1 died: its connection ended without a goodbye ("))
        << of.heard.errors[0];
  }
}

TEST(Unreachable, AreTheErrorsThatSayNothingOfTheProcess) {
  for (const int number : {ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN})
    EXPECT_TRUE(is_unreachable(socket_error("receive", number))) << number;
  for (const int number : {ECONNRESET, EPIPE, ECONNREFUSED, ECONNABORTED, ENOTCONN, EMFILE, ENOMEM})
    EXPECT_FALSE(is_unreachable(socket_error("receive", number))) << number;
}

}  // namespace
}  // namespace trestle
