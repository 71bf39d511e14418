// Every transport: messages of all sizes and shapes arrive, in any order of posting on the two sides.
#include <algorithm>
#include <cstring>
#include <deque>

#include "conformance/transport_conformance.h"

namespace trestle {
namespace transport_messages_test {
namespace {

using TransportMessages = TransportTest;
INSTANTIATE_TEST_SUITE_P(All, TransportMessages, ::testing::ValuesIn(transport_names()),
                         [](const auto& info) { return info.param; });

constexpr size_t kEager = kTestEager;
constexpr size_t kSizes[] = {0,          1,      7,          8,      24,      25,      4096,    4097,
                             kEager - 1, kEager, kEager + 1, 65'536, 100'003, 262'144, 1 << 20, (5 << 20) + 13};

TEST_P(TransportMessages, ArriveInEveryOrderOfPosting) {
  Endpoints endpoints(GetParam(), 2);
  uint64_t number = 0;
  for (const size_t bytes : kSizes) {
    for (const int order : {0, 1, 2}) {
      for (const size_t pieces : {1, 0}) {
        Outgoing out(1, {number, 3, 1, 64}, bytes);
        Incoming in(0, {number, 3, 1, 64}, bytes, pieces);
        ++number;
        if (order == 0) post(endpoints, 1, in);
        post(endpoints, 0, out);
        // Rounds in which it arrives, or its sender asks, before the receive is posted.
        const int rounds = order == 2 ? 50 : 0;
        ASSERT_TRUE(endpoints.drive_rounds(rounds));
        if (order != 0) post(endpoints, 1, in);
        ASSERT_TRUE(endpoints.drive([&] { return in.done(); }));
        EXPECT_TRUE(in.right()) << "order " << order << ", pieces " << pieces;
        if (pieces == 0) endpoints[1].release(in.request);
        ASSERT_TRUE(endpoints.drive([&] { return out.done(); }));
      }
    }
  }
}

// With a limit of zero only empty messages are sent before their receiver has asked for them.
TEST_P(TransportMessages, NoDataGoesUnaskedWithALimitOfZero) {
  Endpoints endpoints(GetParam(), 2, 0);
  uint64_t number = 0;
  for (const bool posted_first : {true, false}) {  // the first message opens the connection
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, size_t{100}, kTestEager, size_t{100'003}}) {
      for (const size_t pieces : {1, 0}) {
        const MessageTag tag{number++, 3, 1, 64};
        Outgoing out(1, tag, bytes);
        Incoming in(0, tag, bytes, pieces);
        if (posted_first) post(endpoints, 1, in);
        post(endpoints, 0, out);
        ASSERT_TRUE(endpoints.drive_rounds(posted_first ? 0 : 200));
        if (!posted_first && bytes > 0) {
          EXPECT_FALSE(out.done()) << bytes << " bytes that nobody has asked for";
        }
        if (!posted_first) post(endpoints, 1, in);
        ASSERT_TRUE(endpoints.drive([&] { return in.done(); }));
        EXPECT_TRUE(in.right()) << bytes << " bytes, pieces " << pieces;
        if (pieces == 0) endpoints[1].release(in.request);
        ASSERT_TRUE(endpoints.drive([&] { return out.done(); }));
      }
    }
  }
}

// Many such messages in both directions, received in the opposite order. Each waits only for its own receiver.
TEST_P(TransportMessages, ManyMayWaitToBeAskedFor) {
  Endpoints endpoints(GetParam(), 2, 0);
  std::deque<Outgoing> out;
  std::deque<Incoming> in;
  for (uint64_t n = 0; n < 500; ++n) {
    for (const int32_t rank : {0, 1}) post(endpoints, rank, out.emplace_back(1 - rank, MessageTag{n, 0, 0, 0}, n % 9));
  }
  ASSERT_TRUE(endpoints.drive_rounds(100));
  for (uint64_t n = 500; n-- > 0;) {
    for (const int32_t rank : {0, 1}) post(endpoints, rank, in.emplace_back(1 - rank, MessageTag{n, 0, 0, 0}, n % 9));
  }
  ASSERT_TRUE(endpoints.drive([&] {
    return std::all_of(in.begin(), in.end(), [](auto& i) { return i.done(); }) &&
           std::all_of(out.begin(), out.end(), [](auto& o) { return o.done(); });
  }));
  for (const Incoming& i : in) EXPECT_TRUE(i.right());
}

TEST_P(TransportMessages, ArePutTogetherFromAnyPieces) {
  Endpoints endpoints(GetParam(), 2);
  uint64_t number = 0;
  for (const size_t bytes : {size_t{1}, size_t{100}, kTestEager - 5, size_t{300'000}}) {
    for (const auto& [from, to] : {std::pair{1, 256}, {256, 1}, {256, 256}, {7, 5}, {256, 0}}) {
      Outgoing out(0, {number, 0, 0, 0}, bytes, from);
      Incoming in(1, {number, 0, 0, 0}, bytes, to);
      ++number;
      post(endpoints, 1, out);
      post(endpoints, 0, in);
      ASSERT_TRUE(endpoints.drive([&] { return in.done(); }));
      EXPECT_TRUE(in.right()) << from << " pieces to " << to;
      if (to == 0) endpoints[0].release(in.request);
      ASSERT_TRUE(endpoints.drive([&] { return out.done(); }));
    }
  }
}

TEST_P(TransportMessages, ViewsStayUntilReleased) {
  Endpoints endpoints(GetParam(), 2);
  std::deque<Outgoing> out;
  std::deque<Incoming> in;
  for (uint64_t n = 0; n < 30; ++n) {
    const size_t bytes = n % 3 == 0 ? 100 : n % 3 == 1 ? 5000 : 70'000;
    post(endpoints, 0, out.emplace_back(1, MessageTag{n, 0, 0, 0}, bytes, 3));
    post(endpoints, 1, in.emplace_back(0, MessageTag{n, 0, 0, 0}, bytes, 0));
  }
  // Views may hold memory that later messages need, so they are released in order. Held data must not change meanwhile.
  for (uint64_t n = 0; n < 30; ++n) {
    ASSERT_TRUE(endpoints.drive([&] { return in[n].done(); }));
    for (uint64_t m = 0; m <= n; ++m) {
      if (out[m].done()) out[m].overwrite();
    }
    EXPECT_TRUE(in[n].right());
    endpoints[1].release(in[n].request);
  }
  ASSERT_TRUE(endpoints.drive([&] { return std::all_of(out.begin(), out.end(), [](auto& o) { return o.done(); }); }));
}

TEST_P(TransportMessages, SendDoneMeansItMayBeOverwritten) {
  Endpoints endpoints(GetParam(), 2);
  std::deque<Outgoing> out;
  for (uint64_t n = 0; n < 40; ++n) post(endpoints, 0, out.emplace_back(1, MessageTag{n, 0, 0, 0}, 100 + 700 * n, 2));
  const auto overwrite_done = [&] {
    for (Outgoing& o : out) {
      if (o.done()) o.overwrite();
    }
    return true;
  };
  (void)overwrite_done();
  ASSERT_TRUE(endpoints.drive_rounds(50));
  for (uint64_t n = 40; n-- > 0;) {
    (void)overwrite_done();
    Incoming in(0, {n, 0, 0, 0}, 100 + 700 * n);
    post(endpoints, 1, in);
    ASSERT_TRUE(endpoints.drive([&] { return overwrite_done() && in.done(); }));
    EXPECT_TRUE(in.right());
  }
  ASSERT_TRUE(endpoints.drive([&] { return std::all_of(out.begin(), out.end(), [](auto& o) { return o.done(); }); }));
}

// Large messages that no rank receives, and more small ones than any buffer holds, in both directions. Then one message
// that both ranks receive.
TEST_P(TransportMessages, NothingWaitsBehindWhatNobodyReceives) {
  Endpoints endpoints(GetParam(), 2);
  std::deque<Outgoing> out;
  for (const int32_t rank : {0, 1}) {
    for (uint64_t n = 0; n < 8; ++n)
      post(endpoints, rank, out.emplace_back(1 - rank, MessageTag{n, 0, 0, 0}, 1'000'000));
    for (uint64_t n = 100; n < 3100; ++n)
      post(endpoints, rank, out.emplace_back(1 - rank, MessageTag{n, 0, 0, 0}, n % 7 == 0 ? kTestEager : n % 100));
  }
  ASSERT_TRUE(endpoints.drive_rounds(100));
  for (const size_t bytes : {size_t{8}, kTestEager, size_t{2} << 20}) {
    for (const int32_t rank : {0, 1}) {
      const MessageTag tag{10'000 + bytes, 0, 0, 0};
      Outgoing wanted(1 - rank, tag, bytes);
      Incoming in(rank, tag, bytes);
      post(endpoints, rank, wanted);
      post(endpoints, 1 - rank, in);
      ASSERT_TRUE(endpoints.drive([&] { return in.done() && wanted.done(); }));
      EXPECT_TRUE(in.right());
    }
  }
  std::deque<Incoming> in;
  for (size_t i = out.size(); i-- > 0;) {
    const SendRequest& send = out[i].request;
    post(endpoints, send.peer, in.emplace_back(1 - send.peer, send.tag, send.bytes));
  }
  ASSERT_TRUE(endpoints.drive([&] {
    return std::all_of(in.begin(), in.end(), [](auto& i) { return i.done(); }) &&
           std::all_of(out.begin(), out.end(), [](auto& o) { return o.done(); });
  }));
  for (const Incoming& i : in) EXPECT_TRUE(i.right());
}

TEST_P(TransportMessages, TryAgainTakesNothing) {
  Endpoints endpoints(GetParam(), 2);
  constexpr uint64_t kMany = 20'000;
  std::deque<Outgoing> out;
  std::deque<Incoming> in;
  uint64_t posted = 0;
  for (uint64_t n = 0; n < kMany; ++n) out.emplace_back(1, MessageTag{n, 0, 0, 0}, 16);
  for (; posted < kMany; ++posted) {
    auto taken = endpoints[0].post_send(out[posted].request);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    if (!taken.value()) break;
  }
  EXPECT_TRUE(posted == kMany || out[posted].request.state == RequestState::kIdle);
  for (uint64_t n = 0; n < kMany; ++n) {
    if (n >= posted) post(endpoints, 0, out[n]);
    post(endpoints, 1, in.emplace_back(0, MessageTag{n, 0, 0, 0}, 16));
  }
  ASSERT_TRUE(endpoints.drive([&] { return std::all_of(in.begin(), in.end(), [](auto& i) { return i.done(); }); }));
  for (const Incoming& i : in) ASSERT_TRUE(i.right());
}

TEST_P(TransportMessages, DifferentSizesAreAnError) {
  for (const auto& [sent, expected] : {std::pair<size_t, size_t>{100, 101}, {100'000, 100'001}}) {
    Endpoints endpoints(GetParam(), 2);
    Outgoing out(1, {1, 0, 0, 0}, sent);
    Incoming in(0, {1, 0, 0, 0}, expected);
    post(endpoints, 0, out);
    post(endpoints, 1, in);
    Error error{Code::kSuccess, ""};
    const auto step = [&]() -> Status {
      for (const int32_t r : {0, 1}) {
        auto moved = endpoints[r].progress();
        if (!moved.ok()) error = moved.error();
      }
      return {};
    };
    ASSERT_TRUE(drive_until(step, [&] { return error.code != Code::kSuccess; }));
    EXPECT_NE(error.message.find("rank "), std::string::npos) << error.message;
    EXPECT_FALSE(in.done());
  }
}

}  // namespace
}  // namespace transport_messages_test
}  // namespace trestle
