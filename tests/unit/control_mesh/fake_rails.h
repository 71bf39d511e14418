// FakeRails: two rails between the ranks of a test, over loopback, which the test cuts, mends and makes silent. And
// RailMeshes: control meshes over them, polled by hand.
//
// One thread polls; close() may run on another one. The clock is the real one and can be moved forward.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "control_mesh/control_mesh.h"
#include "control_mesh/dissemination.h"
#include "transport/socket/socket.h"

namespace trestle {

inline constexpr int64_t kTestMs = 1'000'000;

struct SkewedClock : Clock {
  int64_t now_ns() override { return monotonic_clock().now_ns() + skew; }
  std::atomic<int64_t> skew{0};
};

// What the ranks have in common: where they listen, and in what state the rails are.
class RailNet {
 public:
  static constexpr size_t kRails = 2;

  explicit RailNet(int32_t ranks) : listeners_(static_cast<size_t>(ranks)) {
    SocketAddress any_port = parse_address("127.0.0.1:1").value();
    any_port.set_port(0);
    for (auto& of_rank : listeners_) {
      for (Listener& one : of_rank) {
        auto made = listen_tcp_at(any_port);
        EXPECT_TRUE(made.ok());
        one = std::move(made).value();
      }
    }
  }

  // Ends all connections over the rail, and lets none be made until mend().
  void cut(size_t rail) {
    const MutexLock lock(mutex_);
    cut_.insert(rail);
    for (const UniqueFd& one : connections_[rail]) shutdown(one.get(), SHUT_RDWR);
    connections_[rail].clear();
  }
  // Lets no connection be made over the rail until mend().
  void block(size_t rail) {
    const MutexLock lock(mutex_);
    cut_.insert(rail);
  }
  void mend(size_t rail) {
    const MutexLock lock(mutex_);
    cut_.erase(rail);
  }
  // A firewall refuses the connections that are made over the rail from now on.
  void refuse(size_t rail) {
    const MutexLock lock(mutex_);
    refusing_.insert(rail);
  }
  // Connections over the rail are not answered from now on.
  void silence(size_t rail) {
    const MutexLock lock(mutex_);
    silent_.insert(rail);
  }
  // How many connections were tried over it.
  int dials(size_t rail) {
    const MutexLock lock(mutex_);
    return dials_[rail];
  }
  // Nothing comes from that rank's host any more.
  void lose_host(int32_t rank) {
    const MutexLock lock(mutex_);
    lost_hosts_.insert(rank);
  }
  // The rank's process is gone: its ends of all connections are closed, and nobody listens.
  void kill(int32_t rank) {
    const MutexLock lock(mutex_);
    for (Listener& one : listeners_[static_cast<size_t>(rank)]) one.fd.reset();
  }
  // The test keeps a copy of a connection, so that it can be cut.
  void keep(size_t rail, int fd) {
    const MutexLock lock(mutex_);
    if (cut_.contains(rail)) shutdown(fd, SHUT_RDWR);
    connections_[rail].push_back(UniqueFd::open([fd] { return dup(fd); }));
  }

  int listener(int32_t rank, size_t rail) const { return listeners_[static_cast<size_t>(rank)][rail].fd.get(); }
  const SocketAddress& address(int32_t rank, size_t rail) const {
    return listeners_[static_cast<size_t>(rank)][rail].address;
  }

  Result<UniqueFd> dial(int32_t rank, size_t rail) {
    {
      const MutexLock lock(mutex_);
      ++dials_[rail];
      if (cut_.contains(rail)) return Error{Code::kRemoteError, "connect: Network is unreachable"};
      if (refusing_.contains(rail)) return Error{Code::kRemoteError, "connect: Connection refused"};
      if (lost_hosts_.contains(rank) || silent_.contains(rail))  // a socket that never becomes connected
        return UniqueFd::open([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
    }
    return start_connect(address(rank, rail));
  }

 private:
  std::vector<std::array<Listener, kRails>> listeners_;
  Mutex mutex_;
  std::set<size_t> cut_ TRESTLE_GUARDED_BY(mutex_);
  std::set<size_t> silent_ TRESTLE_GUARDED_BY(mutex_);
  std::array<int, kRails> dials_ TRESTLE_GUARDED_BY(mutex_) = {};
  std::set<size_t> refusing_ TRESTLE_GUARDED_BY(mutex_);
  std::set<int32_t> lost_hosts_ TRESTLE_GUARDED_BY(mutex_);
  std::array<std::vector<UniqueFd>, kRails> connections_ TRESTLE_GUARDED_BY(mutex_);
};

class FakeRails : public ControlRails {
 public:
  FakeRails(RailNet& net, int32_t rank, size_t leading) : net_(net), rank_(rank), leading_(leading) {}
  Credentials credentials() const override { return {secret(), {}, rank_}; }
  size_t count() const override { return RailNet::kRails; }
  std::string name(size_t rail) const override { return "eth" + std::to_string(rail); }
  int listener(size_t rail) const override { return net_.listener(rank_, rail); }
  std::vector<size_t> rails_to(int32_t) const override {
    return leading_ == 1 ? std::vector<size_t>{0} : std::vector<size_t>{0, 1};
  }
  std::vector<std::string> places(int32_t) const override { return {}; }
  Result<UniqueFd> dial_place(int32_t, size_t) override { return Error{Code::kInternalError, "there are no places"}; }
  Result<UniqueFd> dial(int32_t rank, size_t rail) override { return net_.dial(rank, rail); }
  void adopt(int fd, size_t rail) override {
    set_tcp_options(fd, {});
    net_.keep(rail, fd);
  }
  std::string rail_of(int) const override { return "eth0"; }

  static std::vector<std::byte> secret() { return {std::byte{7}, std::byte{9}}; }

 private:
  RailNet& net_;
  const int32_t rank_;
  const size_t leading_;
};

struct RailHeard : ControlListener {
  void on_error(const Error& error, int32_t) override { errors.push_back(error.message); }
  void on_abort(int32_t rank) override { aborts.push_back(rank); }
  void on_bye(int32_t rank, bool) override { byes.push_back(rank); }
  void on_letter(int32_t, const std::string& text) override { letters.push_back(text); }
  std::vector<std::string> errors;
  std::vector<int32_t> aborts;
  std::vector<int32_t> byes;
  std::vector<std::string> letters;
};

class RailMeshes {
 public:
  struct Options {
    int64_t heartbeat_ns = 60'000 * kTestMs;
    int64_t silence_ns = 3'000 * kTestMs;
    bool (*host_answers)(int, int64_t) = nullptr;
    size_t leading = 2;  // rails between the ranks
    bool starts = true;  // the meshes have listeners
  };
  explicit RailMeshes(int32_t ranks) : RailMeshes(ranks, Options()) {}
  RailMeshes(int32_t ranks, const Options& options) : net(ranks), heard(static_cast<size_t>(ranks)) {
    std::vector<std::vector<ControlConnection>> out(heard.size());
    std::vector<std::vector<ControlConnection>> in(heard.size());
    wires_.resize(heard.size());
    for (int k = 0; k < dissemination_steps(ranks); ++k) {
      for (int32_t r = 0; r < ranks; ++r) {
        const auto to = static_cast<int32_t>((r + (int64_t{1} << k)) % ranks);
        int pair[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        net.keep(0, pair[0]);
        wires_[static_cast<size_t>(r)].push_back(UniqueFd(dup(pair[0])));
        wires_[static_cast<size_t>(to)].push_back(UniqueFd(dup(pair[1])));
        out[static_cast<size_t>(r)].push_back({to, UniqueFd(pair[0])});
        in[static_cast<size_t>(to)].push_back({r, UniqueFd(pair[1])});
      }
    }
    for (int32_t r = 0; r < ranks; ++r) {
      const auto at = static_cast<size_t>(r);
      ControlSettings settings{r, ranks, options.heartbeat_ns, &clock, options.host_answers, true};
      mesh.push_back(ControlMesh::create(settings, std::move(out[at]), std::move(in[at])).value());
      EXPECT_TRUE(
          mesh.back()->use_rails(std::make_unique<FakeRails>(net, r, options.leading), options.silence_ns).ok());
      if (options.starts) mesh.back()->start(&heard[at]);
    }
  }

  // The ranks in `still` are not polled, as if their processes were stopped.
  void poll_all() {
    std::vector<pollfd> fds;
    for (size_t r = 0; r < mesh.size(); ++r) {
      if (!mesh[r] || still.contains(static_cast<int32_t>(r))) continue;
      mesh[r]->poll(clock.now_ns());
      fds.push_back({mesh[r]->event_fd(), POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), 1);
  }
  // Polls until that is so.
  void until(const std::function<bool()>& done) {
    while (!done()) poll_all();
  }
  // Lets time pass for all ranks that are polled.
  void pass(int64_t time_ns, int64_t step_ns = 100 * kTestMs) {
    for (int64_t passed = 0; passed < time_ns; passed += step_ns) {
      clock.skew += step_ns;
      poll_all();
    }
  }
  // Ends the first connection of a rank's link to the rank behind it. There are two ranks.
  void end_out_link(int32_t rank) { shutdown(wires_[static_cast<size_t>(rank)][rank == 0 ? 0 : 1].get(), SHUT_RDWR); }
  // The rank's process is gone.
  void kill(int32_t rank) {
    net.kill(rank);
    for (UniqueFd& wire : wires_[static_cast<size_t>(rank)]) shutdown(wire.get(), SHUT_RDWR);
    still.insert(rank);
  }
  bool all_heard_an_error() const {
    for (size_t r = 0; r < heard.size(); ++r) {
      if (!still.contains(static_cast<int32_t>(r)) && heard[r].errors.empty()) return false;
    }
    return true;
  }
  void expect_no_error() const {
    for (const RailHeard& one : heard) EXPECT_EQ(one.errors, std::vector<std::string>());
  }
  // All ranks gather their numbers. False: not all have the result.
  void start_gather(uint64_t seq) {
    for (size_t r = 0; r < mesh.size(); ++r) mesh[r]->start_all_gather(seq, std::to_string(r));
  }
  void finish_gather(uint64_t seq) {
    for (size_t r = 0; r < mesh.size(); ++r) {
      std::vector<std::string> blobs;
      until([&] {
        auto result = mesh[r]->all_gather_result(seq);
        EXPECT_TRUE(result.ok()) << result.error().message;
        if (result.ok()) blobs = std::move(result).value();
        return !result.ok() || !blobs.empty();
      });
      for (size_t k = 0; k < blobs.size(); ++k) EXPECT_EQ(blobs[k], std::to_string(k));
    }
  }

  SkewedClock clock;
  RailNet net;
  std::vector<RailHeard> heard;
  std::set<int32_t> still;
  std::vector<std::unique_ptr<ControlMesh>> mesh;

 private:
  std::vector<std::vector<UniqueFd>> wires_;  // copies of each rank's ends of the first connections
};

}  // namespace trestle
