// Every transport: sleep and wake-up, orderly and other ends, and random traffic.
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>

#include "base/scope_exit.h"
#include "base/transport_kinds.h"
#include "base/unique_fd.h"
#include "conformance/transport_conformance.h"

namespace trestle {
namespace transport_life_test {
namespace {

using TransportLife = TransportTest;
INSTANTIATE_TEST_SUITE_P(All, TransportLife, ::testing::ValuesIn(transport_names()),
                         [](const auto& info) { return info.param; });

// Drives one endpoint until `done` and sleeps whenever the endpoint has nothing to do.
void sleep_until(Transport& endpoint, const std::function<bool()>& done) {
  const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  const UniqueFd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  for (const int fd : {bell.get(), endpoint.event_fd()}) {
    if (fd < 0) continue;
    ASSERT_EQ(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event), 0);
  }
  endpoint.on_arrival([&bell] { ASSERT_EQ(::eventfd_write(bell.get(), 1), 0); });
  const ScopeExit silent([&endpoint] { endpoint.on_arrival({}); });
  while (!done()) {
    auto moved = endpoint.progress();
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    if (moved.value() || done()) continue;
    if (endpoint.prepare_sleep()) {
      // A lost wake-up becomes a failure here, so that the test does not hang.
      ASSERT_EQ(::epoll_wait(epoll.get(), &event, 1, 60'000), 1) << "nobody woke the endpoint";
      eventfd_t rung = 0;
      (void)::eventfd_read(bell.get(), &rung);
    }
    endpoint.finish_sleep();
  }
}

TEST_P(TransportLife, SleepersAreWoken) {
  Endpoints endpoints(GetParam(), 2);
  constexpr uint64_t kRounds = 300;
  const auto play = [&](int32_t rank) {
    for (uint64_t n = 0; n < kRounds; ++n) {
      const size_t bytes = n % 3 == 0 ? 8 : n % 3 == 1 ? 3000 : 60'000;
      Outgoing out(1 - rank, {n, 0, 0, 0}, bytes);
      Incoming in(1 - rank, {n, 0, 0, 0}, bytes);
      const auto send = [&] {
        sleep_until(endpoints[rank], [&] { return endpoints[rank].post_send(out.request).value(); });
      };
      if (rank == 0) send();
      sleep_until(endpoints[rank], [&] { return endpoints[rank].post_recv(in.request).value(); });
      sleep_until(endpoints[rank], [&] { return in.done(); });
      EXPECT_TRUE(in.right());
      if (rank == 1) send();
      sleep_until(endpoints[rank], [&] { return out.done(); });
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

TEST_P(TransportLife, AfterCloseNothingIsTouched) {
  Endpoints endpoints(GetParam(), 2);
  auto out = std::make_unique<std::deque<Outgoing>>();
  auto in = std::make_unique<std::deque<Incoming>>();
  Outgoing first(1, {99, 0, 0, 0}, 8);
  Incoming first_in(0, {99, 0, 0, 0}, 8);
  post(endpoints, 0, first);
  post(endpoints, 1, first_in);
  ASSERT_TRUE(endpoints.drive([&] { return first_in.done(); }));
  for (uint64_t n = 0; n < 10; ++n) {
    const size_t bytes = n % 2 == 0 ? 100 : 3'000'000;
    post(endpoints, 0, out->emplace_back(1, MessageTag{n, 0, 0, 0}, bytes));
    post(endpoints, 0, in->emplace_back(1, MessageTag{n, 0, 0, 0}, bytes, n % 3));
  }
  // The peer's messages arrive while this end closes, or after it.
  std::deque<Outgoing> back;
  for (uint64_t n = 0; n < 10; ++n) {
    back.emplace_back(0, MessageTag{n, 0, 0, 0}, n % 2 == 0 ? 100 : 3'000'000);
    ASSERT_TRUE(endpoints[1].post_send(back.back().request).ok());
  }
  endpoints[0].close(0);
  endpoints[0].close(0);
  out.reset();
  in.reset();
  for (int i = 0; i < 100; ++i) (void)endpoints[1].progress();
}

TEST_P(TransportLife, ADeadPeerIsNamed) {
  for (const bool pending : {true, false}) {
    SCOPED_TRACE(pending ? "a receive is open" : "nothing is open");
    Endpoints endpoints(GetParam(), 3);
    Outgoing out(1, {1, 0, 0, 0}, 64);
    Incoming in(0, {1, 0, 0, 0}, 64);
    post(endpoints, 0, out);
    post(endpoints, 1, in);
    ASSERT_TRUE(endpoints.drive([&] { return in.done() && out.done(); }));
    Incoming never(1, {2, 0, 0, 0}, 64);
    if (pending) post(endpoints, 0, never);
    endpoints.destroy(1);  // like a process that ends: without a goodbye
    const Error error = endpoints.drive_to_error(0);
    EXPECT_EQ(error.code, Code::kRemoteError);
    EXPECT_NE(error.message.find(test_name(1)), std::string::npos) << error.message;
    EXPECT_FALSE(never.done());
    // The error stays.
    EXPECT_FALSE(endpoints[0].progress().ok());
  }
}

// The pair's connection may be in any state. A system error would count as this rank's own failure.
TEST_P(TransportLife, APeerThatDiesWhileConnectingIsNamed) {
  const bool in_process = facts_of(parse_transport(GetParam()).value()).reach == Reach::kProcess;
  if (in_process) GTEST_SKIP() << "within a process there is nothing to connect";
  for (const int32_t ahead : {-1, 0, 1}) {  // rounds of one rank alone before the death
    for (int rounds = 0; rounds < 16; ++rounds) {
      SCOPED_TRACE(testing::Message() << "rounds " << rounds << ", ahead " << ahead);
      Endpoints endpoints(GetParam(), 2);
      Outgoing there(1, {1, 0, 0, 0}, 64);
      Outgoing back(0, {2, 0, 0, 0}, 64);
      Incoming never(1, {3, 0, 0, 0}, 64);
      if (rounds % 2 == 0) post(endpoints, 1, back);
      post(endpoints, 0, there);
      post(endpoints, 0, never);
      ASSERT_TRUE(endpoints.drive_rounds(rounds / 2));
      if (ahead >= 0) {
        ASSERT_TRUE(endpoints[ahead].progress().ok());
      }
      endpoints.destroy(1);
      const Error error = endpoints.drive_to_error(0);
      EXPECT_EQ(error.code, Code::kRemoteError) << error.message;
      EXPECT_NE(error.message.find(test_name(1)), std::string::npos) << error.message;
    }
  }
}

// A notice is complete at once, so its sender may leave in order in any state of the connection.
TEST_P(TransportLife, WhoLeavesWhileConnectingIsNotTakenForDead) {
  for (const int32_t ahead : {-1, 0, 1}) {  // rounds of one rank alone before the end
    for (int rounds = 0; rounds < 8; ++rounds) {
      SCOPED_TRACE(testing::Message() << "rounds " << rounds << ", ahead " << ahead);
      Endpoints endpoints(GetParam(), 2);
      Outgoing notice(1, {1, kNoticePhase, 0, 0}, 0);
      post(endpoints, 0, notice);
      ASSERT_TRUE(endpoints.drive_rounds(rounds));
      if (ahead >= 0) {
        ASSERT_TRUE(endpoints[ahead].progress().ok());
      }
      endpoints[0].close(1);
      for (int i = 0; i < 20; ++i) {
        const Result<bool> moved = endpoints[1].progress();
        ASSERT_TRUE(moved.ok()) << moved.error().message;
      }
    }
  }
}

TEST_P(TransportLife, WhatWasDoneArrivesAfterAPeacefulClose) {
  Endpoints endpoints(GetParam(), 2);
  std::deque<Outgoing> out;
  std::deque<Incoming> in;
  for (uint64_t n = 0; n < 20; ++n) {
    const size_t bytes = n % 2 == 0 ? 500 : 200'000;
    post(endpoints, 0, out.emplace_back(1, MessageTag{n, 0, 0, 0}, bytes));
    post(endpoints, 1, in.emplace_back(0, MessageTag{n, 0, 0, 0}, bytes));
  }
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    const auto all_sent = [&] { return std::all_of(out.begin(), out.end(), [](auto& o) { return o.done(); }); };
    EXPECT_TRUE(drive_until(
        [&]() -> Status {
          TRY(endpoints[0].progress());
          return {};
        },
        all_sent));
    endpoints[0].close(30'000);
    closed = true;
  });
  const auto all_here = [&] { return std::all_of(in.begin(), in.end(), [](auto& i) { return i.done(); }); };
  EXPECT_TRUE(drive_until(
      [&]() -> Status {
        TRY(endpoints[1].progress());
        return {};
      },
      [&] { return all_here() && closed.load(); }));
  closer.join();
  for (const Incoming& i : in) EXPECT_TRUE(i.right());
  // The peer left in order. That is no error until this rank needs something from it.
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(endpoints[1].progress().ok());
  Incoming never(0, {1000, 0, 0, 0}, 64);
  bool failed = false;
  const auto step = [&]() -> Status {
    if (never.request.state == RequestState::kIdle) failed = !endpoints[1].post_recv(never.request).ok();
    failed = failed || !endpoints[1].progress().ok();
    return {};
  };
  EXPECT_TRUE(drive_until(step, [&] { return failed; }));
}

// The messages from rank `from` to rank `to`. Both know the seed.
struct Planned {
  MessageTag tag;
  size_t bytes;
  size_t send_pieces;
  size_t recv_pieces;
};

std::vector<Planned> planned(uint64_t seed, int32_t from, int32_t to) {
  Rng rng(seed * 1000 + static_cast<uint64_t>(from) * 10 + static_cast<uint64_t>(to));
  std::vector<Planned> list;
  for (uint64_t n = 0; n < 60; ++n) {
    const uint64_t kind = rng.below(10);
    const size_t bytes = kind < 4 ? rng.below(200) : kind < 7 ? rng.below(2 * kTestEager) : rng.below(400'000);
    list.push_back({{n, static_cast<uint32_t>(rng.below(4)), 0, 0}, bytes, 1 + rng.below(6), rng.below(5)});
  }
  return list;
}

template <class Value>
void shuffle(std::vector<Value>& values, Rng& rng) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.below(i)]);
}

// All messages of one rank in its own order. Done when all have arrived and left.
class Traffic {
 public:
  Traffic(Transport& transport, int32_t rank, int32_t ranks, uint64_t seed)
      : transport_(transport), rng_(seed * 77 + static_cast<uint64_t>(rank)) {
    for (int32_t peer = 0; peer < ranks; ++peer) {
      if (peer == rank) continue;
      for (const Planned& p : planned(seed, rank, peer))
        todo_.push_back({&out_.emplace_back(peer, p.tag, p.bytes, p.send_pieces), nullptr});
      for (const Planned& p : planned(seed, peer, rank))
        todo_.push_back({nullptr, &in_.emplace_back(peer, p.tag, p.bytes, p.recv_pieces)});
    }
    shuffle(todo_, rng_);
  }

  Status step() {
    for (uint64_t burst = rng_.below(8); burst > 0 && !todo_.empty(); --burst) {
      const auto [out, in] = todo_.back();
      const bool taken =
          out != nullptr ? TRY(transport_.post_send(out->request)) : TRY(transport_.post_recv(in->request));
      if (!taken) break;
      if (in != nullptr) open_.push_back(in);
      todo_.pop_back();
    }
    TRY(transport_.progress());
    for (size_t i = 0; i < open_.size();) {
      if (!open_[i]->done()) {
        ++i;
        continue;
      }
      EXPECT_TRUE(open_[i]->right());
      if (open_[i]->request.pieces.empty()) transport_.release(open_[i]->request);
      open_[i] = open_.back();
      open_.pop_back();
    }
    for (Outgoing& out : out_) {
      if (out.done()) out.overwrite();
    }
    return {};
  }
  bool done() const {
    return todo_.empty() && open_.empty() && std::all_of(out_.begin(), out_.end(), [](auto& o) { return o.done(); });
  }

 private:
  struct Todo {
    Outgoing* out;
    Incoming* in;
  };
  Transport& transport_;
  Rng rng_;
  std::deque<Outgoing> out_;
  std::deque<Incoming> in_;
  std::vector<Todo> todo_;
  std::vector<Incoming*> open_;
};

TEST_P(TransportLife, RandomTrafficDrivenByOneThread) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Endpoints endpoints(GetParam(), 4);
    std::deque<Traffic> all;
    for (int32_t r = 0; r < 4; ++r) all.emplace_back(endpoints[r], r, 4, seed);
    const auto step = [&]() -> Status {
      for (Traffic& t : all) TRY(t.step());
      return {};
    };
    ASSERT_TRUE(
        drive_until(step, [&] { return std::all_of(all.begin(), all.end(), [](auto& t) { return t.done(); }); }))
        << "seed " << seed;
  }
}

TEST_P(TransportLife, RandomTrafficWithAThreadPerRank) {
  for (uint64_t seed = 11; seed <= 14; ++seed) {
    Endpoints endpoints(GetParam(), 4);
    std::atomic<int> running{4};
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < 4; ++r) {
      threads.emplace_back([&, r] {
        Traffic traffic(endpoints[r], r, 4, seed);
        EXPECT_TRUE(drive_until([&] { return traffic.step(); }, [&] { return traffic.done(); })) << "seed " << seed;
        --running;
        // Other ranks may still need this end.
        (void)drive_until(
            [&]() -> Status {
              TRY(endpoints[r].progress());
              return {};
            },
            [&] { return running == 0; });
        endpoints[r].close(30'000);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(TransportCatalog, HasTheRowsOfTheTableOfKinds) {
  ASSERT_EQ(transports().size(), transport_kinds().size());
  for (size_t i = 0; i < transports().size(); ++i) EXPECT_EQ(transports()[i].name, transport_kinds()[i].name) << i;
}

TEST(TransportCatalog, UnknownNamesGetTheList) {
  const auto row = find_transport("pigeon");
  ASSERT_FALSE(row.ok());
  for (const TransportRow& known : transports()) EXPECT_NE(row.error().message.find(known.name), std::string::npos);
}

TEST(LoopbackTransport, ARankMaySendToItself) {
  Endpoints endpoints("loopback", 1);
  for (const size_t pieces : {1, 0}) {
    Outgoing out(0, {pieces, 0, 0, 0}, 1000);
    Incoming in(0, {pieces, 0, 0, 0}, 1000, pieces);
    post(endpoints, 0, out);
    post(endpoints, 0, in);
    ASSERT_TRUE(endpoints.drive([&] { return in.done(); }));
    EXPECT_TRUE(in.right());
    if (pieces == 0) endpoints[0].release(in.request);
    ASSERT_TRUE(endpoints.drive([&] { return out.done(); }));
  }
}

TEST(LoopbackTransport, APlaceIsTakenOnce) {
  const std::string job = fresh_job();
  auto first = find_transport("loopback").value()->create(test_config(0, 2, job), {});
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(find_transport("loopback").value()->create(test_config(0, 2, job), {}).ok());
  first.value()->close(0);
  EXPECT_TRUE(find_transport("loopback").value()->create(test_config(0, 2, job), {}).ok());
}

}  // namespace
}  // namespace transport_life_test
}  // namespace trestle
