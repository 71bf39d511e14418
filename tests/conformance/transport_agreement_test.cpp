// Every transport compares an arriving message with the operation that this rank runs, whether a receive is posted or
// not.
#include <deque>

#include "conformance/transport_conformance.h"
#include "transport/agreement.h"

namespace trestle {
namespace transport_agreement_test {
namespace {

using TransportAgreement = TransportTest;
INSTANTIATE_TEST_SUITE_P(All, TransportAgreement, ::testing::ValuesIn(transport_names()),
                         [](const auto& info) { return info.param; });

constexpr uint64_t kOurs = operation_check(Collective::kAllReduce, false, DataType::kFloat32, ReduceOp::kSum, 0);
constexpr uint64_t kTheirs = operation_check(Collective::kAllGather, false, DataType::kFloat32, ReduceOp::kSum, 0);

// Endpoints with an Agreement each, as an engine has it.
struct Agreeing {
  Agreeing(const std::string& transport, int32_t ranks) : endpoints(transport, ranks) {
    for (int32_t r = 0; r < ranks; ++r) {
      std::vector<std::string> names;
      for (int32_t n = 0; n < ranks; ++n) names.push_back(test_name(n));
      endpoints[r].set_agreement(&agreements.emplace_back(r, names));
    }
  }
  // Both ranks agree on an operation and exchange one of its messages, so that they are connected.
  void connect() {
    Outgoing there(1, {0, 0, 0, 0, kOurs}, 8), back(0, {0, 0, 1, 0, kOurs}, 8);
    Incoming there_in(0, {0, 0, 0, 0, kOurs}, 8), back_in(1, {0, 0, 1, 0, kOurs}, 8);
    post(endpoints, 1, there_in);
    post(endpoints, 0, back_in);
    post(endpoints, 0, there);
    post(endpoints, 1, back);
    ASSERT_TRUE(endpoints.drive([&] { return there_in.done() && back_in.done() && there.done() && back.done(); }));
  }

  std::deque<Agreement> agreements;
  Endpoints endpoints;
};

void expect_dissent(const Error& error, uint64_t operation) {
  EXPECT_EQ(error.code, Code::kInvalidUsage) << error.message;
  for (const std::string& fact : {test_name(0), test_name(1), "operation " + std::to_string(operation) + " ",
                                  std::string("allreduce"), std::string("allgather")}) {
    EXPECT_NE(error.message.find(fact), std::string::npos) << "no " << fact << " in: " << error.message;
  }
}

// matched: the receive has the name of the message. posted_first: the receive is posted before the message arrives.
TEST_P(TransportAgreement, AMessageOfAnotherOperationIsAnError) {
  for (const size_t bytes : {size_t{0}, size_t{8}, size_t{24}, size_t{3000}, size_t{60'000}, size_t{3'000'000}}) {
    for (const bool matched : {true, false}) {
      for (const size_t their_bytes : {bytes, bytes + 8}) {
        if (!matched && bytes > kTestEager) continue;  // its sender waits for a receive; a test of notices covers this
        SCOPED_TRACE(testing::Message() << bytes << " bytes" << (matched ? "" : ", not matched"));
        Agreeing a(GetParam(), 2);
        a.connect();
        ASSERT_TRUE(a.agreements[1].announce(7, kOurs));
        Incoming in(0, {7, 1, matched ? 4u : 9u, 0, kOurs}, bytes);
        post(a.endpoints, 1, in);
        Outgoing out(1, {7, 1, 4, 0, kTheirs}, their_bytes);
        // Nothing has been driven, so it does not know our operation yet.
        ASSERT_TRUE(a.agreements[0].announce(7, kTheirs));
        Result<bool> posted = false;
        Error error{Code::kSuccess, ""};
        const auto keep = [&error](const Result<bool>& result) {
          if (!result.ok()) error = result.error();
          return result.ok();
        };
        // Either side may notice first. For a large message it is the sender, when the receiver requests the data.
        ASSERT_TRUE(drive_until(
            [&]() -> Status {
              for (int32_t rank = 0; rank < 2; ++rank) {
                if (!keep(a.endpoints[rank].progress())) return {};
              }
              if (posted.ok() && !posted.value()) keep(posted = a.endpoints[0].post_send(out.request));
              return {};
            },
            [&] { return error.code != Code::kSuccess; }));
        expect_dissent(error, 7);
        EXPECT_FALSE(in.done());
      }
    }
  }
}

// The message arrives before this rank has started an operation. The engine is told when it starts one.
TEST_P(TransportAgreement, AMessageThatCameFirstIsRemembered) {
  for (const size_t bytes : {size_t{0}, size_t{8}, size_t{3000}}) {
    Agreeing a(GetParam(), 2);
    a.connect();
    std::deque<Outgoing> out;
    for (uint64_t n = 1; n <= 20; ++n)
      post(a.endpoints, 0, out.emplace_back(1, MessageTag{n, 0, 0, 0, n == 11 ? kTheirs : kOurs}, bytes));
    ASSERT_TRUE(a.endpoints.drive_rounds(2000));
    for (uint64_t n = 20; n > 11; --n) EXPECT_TRUE(a.agreements[1].announce(n, kOurs)) << n;
    ASSERT_FALSE(a.agreements[1].announce(11, kOurs));
    expect_dissent(a.agreements[1].error(), 11);
  }
}

TEST_P(TransportAgreement, ANoticeIsHeardAndNothingElse) {
  Agreeing a(GetParam(), 2);
  a.connect();
  ASSERT_TRUE(a.agreements[1].announce(3, kOurs));
  std::deque<SendRequest> notices;
  const auto post_notice = [&](uint64_t operation, uint64_t check) {
    SendRequest& notice = notices.emplace_back();
    notice.peer = 1;
    notice.tag = {operation, kNoticePhase, 0, 0, check};
    ASSERT_TRUE(a.endpoints.drive([&] { return a.endpoints[0].post_send(notice).value(); }));
    EXPECT_EQ(notice.state, RequestState::kDone);
  };
  // Repeating the same notice stores nothing.
  for (int i = 0; i < 3000; ++i) {
    post_notice(3, kOurs);
    ASSERT_TRUE(a.endpoints.drive_rounds(1));
  }
  post_notice(3, kTheirs);
  expect_dissent(a.endpoints.drive_to_error(1), 3);
  expect_dissent(a.endpoints.drive_to_error(1), 3);  // the error stays
}

// Ranks whose calls take other ways than messages have exchanged none.
TEST_P(TransportAgreement, ANoticeMayBeTheFirstBetweenTwoRanks) {
  Agreeing a(GetParam(), 2);
  ASSERT_TRUE(a.agreements[1].announce(3, kOurs));
  SendRequest notice;
  notice.peer = 1;
  notice.tag = {3, kNoticePhase, 0, 0, kTheirs};
  bool posted = false;
  const auto post_once = [&] { return posted = posted || a.endpoints[0].post_send(notice).value(); };
  ASSERT_TRUE(a.endpoints.drive(post_once));
  expect_dissent(a.endpoints.drive_to_error(1), 3);
}

// Two receives without senders exchange no messages, but the notice arrives.
TEST_P(TransportAgreement, TwoThatWaitForEachOtherHearANotice) {
  Agreeing a(GetParam(), 2);
  a.connect();
  ASSERT_TRUE(a.agreements[0].announce(5, kTheirs));
  ASSERT_TRUE(a.agreements[1].announce(5, kOurs));
  Incoming at_0(1, {5, 0, 1, 0, kTheirs}, 100), at_1(0, {5, 0, 2, 0, kOurs}, 100);
  post(a.endpoints, 0, at_0);
  post(a.endpoints, 1, at_1);
  ASSERT_TRUE(a.endpoints.drive_rounds(100));
  SendRequest notice;
  notice.peer = 1;
  notice.tag = {5, kNoticePhase, 0, 0, kTheirs};
  ASSERT_TRUE(a.endpoints[0].post_send(notice).value());
  expect_dissent(a.endpoints.drive_to_error(1), 5);
}

TEST_P(TransportAgreement, ANoticeToARankThatHasLeftGoesNowhere) {
  Agreeing a(GetParam(), 2);
  a.connect();
  a.endpoints[1].close(1000);
  ASSERT_TRUE(a.endpoints.drive_rounds(0));
  for (int i = 0; i < 3000; ++i) {
    const Result<bool> moved = a.endpoints[0].progress();
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    SendRequest notice;
    notice.peer = 1;
    notice.tag = {9, kNoticePhase, 0, 0, kOurs};
    ASSERT_TRUE(a.endpoints[0].post_send(notice).ok());
  }
}

// More notices than fit on the way to a rank that does not read them and then leaves. They are not messages that it
// must receive.
TEST_P(TransportAgreement, NoticesThatARankLeavesUnreadHurtNobody) {
  Agreeing a(GetParam(), 2);
  a.connect();
  for (int i = 0; i < 3000; ++i) {
    SendRequest notice;
    notice.peer = 1;
    notice.tag = {9, kNoticePhase, 0, 0, kOurs};
    ASSERT_TRUE(a.endpoints[0].post_send(notice).ok());
  }
  a.endpoints[1].close(1000);
  for (int i = 0; i < 3000; ++i) {
    const Result<bool> moved = a.endpoints[0].progress();
    ASSERT_TRUE(moved.ok()) << moved.error().message;
  }
}

// Two streams run in opposite order on the two ranks, with point-to-point messages in between and many open operations.
TEST_P(TransportAgreement, EqualOperationsInAnyOrderAreFine) {
  Agreeing a(GetParam(), 2);
  constexpr uint64_t kOperations = 100;
  std::deque<Outgoing> out;
  std::deque<Incoming> in;
  const auto check_of = [](uint64_t n) { return n % 2 == 0 ? kOurs : kTheirs; };
  for (uint64_t i = 0; i < kOperations; ++i) {
    for (int32_t rank = 0; rank < 2; ++rank) {
      const uint64_t n = rank == 0 ? i : kOperations - 1 - i;
      const size_t bytes = n % 3 == 0 ? 8 : n % 3 == 1 ? 3000 : 40'000;
      ASSERT_TRUE(a.agreements[rank].announce(n, check_of(n))) << a.agreements[rank].error().message;
      const uint64_t direct = uint64_t{1} << 63 | i;
      post(a.endpoints, rank, in.emplace_back(1 - rank, MessageTag{n, 0, 0, 0, check_of(n)}, bytes));
      post(a.endpoints, rank, out.emplace_back(1 - rank, MessageTag{n, 0, 0, 0, check_of(n)}, bytes));
      post(a.endpoints, rank, out.emplace_back(1 - rank, MessageTag{direct, 0, 0, 0, 7u + rank}, 8));
      post(a.endpoints, rank, in.emplace_back(1 - rank, MessageTag{direct, 0, 0, 0, 9}, 8));
    }
  }
  ASSERT_TRUE(a.endpoints.drive([&] {
    return std::all_of(in.begin(), in.end(), [](const Incoming& m) { return m.done(); }) &&
           std::all_of(out.begin(), out.end(), [](const Outgoing& m) { return m.done(); });
  }));
  for (const Incoming& message : in) EXPECT_TRUE(message.right());
}

// The two ends expect different sizes. The side that notices it names both ranks and both sizes, in any order of
// posting, and nothing is delivered. whole: the segments are alike, but the messages that they begin are not.
TEST_P(TransportAgreement, DifferentSizesAreAnErrorThatNamesBoth) {
  struct Case {
    size_t sent;
    size_t expected;
    uint64_t sent_whole;
    uint64_t expected_whole;
  };
  const Case cases[] = {{8, 16, 0, 0},
                        {0, 4, 0, 0},
                        {4, 0, 0, 0},
                        {3000, 2999, 3000, 2999},
                        {60'000, 60'004, 60'000, 60'004},
                        {3'000'000, 1'000'000, 3'000'000, 1'000'000},
                        {262'144, 262'144, 524'288, 262'144},
                        {262'144, 4, 3'000'000, 4},
                        {4, 262'144, 4, 3'000'000},
                        {262'144, 262'144, 262'144, uint64_t{1} << 40},
                        {16, 16, 4'000'016, 16}};
  for (const Case& c : cases) {
    for (const bool posted_first : {true, false}) {
      SCOPED_TRACE(testing::Message() << c.sent << " sent, " << c.expected << " expected, whole " << c.sent_whole
                                      << ", " << c.expected_whole << (posted_first ? ", posted first" : ""));
      Agreeing a(GetParam(), 2);
      a.connect();
      MessageTag sent{7, 0, 0, 0, kOurs};
      MessageTag expected = sent;
      sent.whole = c.sent_whole;
      expected.whole = c.expected_whole;
      Outgoing out(1, sent, c.sent);
      Incoming in(0, expected, c.expected, c.expected == 0 ? 0 : 1);
      Error error{Code::kSuccess, ""};
      const auto keep = [&error](const Result<bool>& result) {
        if (!result.ok()) error = result.error();
        return result.ok() && result.value();
      };
      bool posted_in = false;
      bool posted_out = false;
      const auto step = [&]() -> Status {
        if (!posted_in && (posted_first || posted_out)) posted_in = keep(a.endpoints[1].post_recv(in.request));
        if (!posted_out && (!posted_first || posted_in)) posted_out = keep(a.endpoints[0].post_send(out.request));
        for (int32_t rank = 0; rank < 2 && error.code == Code::kSuccess; ++rank) keep(a.endpoints[rank].progress());
        return {};
      };
      ASSERT_TRUE(drive_until(step, [&] { return error.code != Code::kSuccess; }));
      EXPECT_EQ(error.code, Code::kInvalidUsage);
      const uint64_t sent_size = c.sent_whole != 0 ? c.sent_whole : c.sent;
      const uint64_t expected_size = c.expected_whole != 0 ? c.expected_whole : c.expected;
      EXPECT_EQ(error.message, test_name(0) + " sends " + std::to_string(sent_size) + " bytes to " + test_name(1) +
                                   ", which expects " + std::to_string(expected_size) + ", in operation 7");
      EXPECT_FALSE(in.done());
    }
  }
}

}  // namespace
}  // namespace transport_agreement_test
}  // namespace trestle
