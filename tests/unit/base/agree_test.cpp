// Ranks on threads that agree or do not: what each of them gets.
#include "base/agree/agree.h"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

namespace trestle {
namespace agree_test {
namespace {

struct Call {
  const char* function = "Grow";
  Facts facts = {};
  Status own = {};
};

// An exchange between threads, which counts.
class Meeting {
 public:
  explicit Meeting(size_t ranks) : said_(ranks), together_(static_cast<std::ptrdiff_t>(ranks)) {}

  Result<std::string> exchange(size_t rank, const std::string& mine) {
    said_[rank] = mine;
    together_.arrive_and_wait();
    std::string all;
    for (const std::string& one : said_) all += one;
    if (rank == 0) bytes.push_back(all.size());
    together_.arrive_and_wait();
    return all;
  }

  std::vector<size_t> bytes;  // of each exchange

 private:
  std::vector<std::string> said_;
  std::barrier<> together_;
};

// What each rank gets. alter: what a rank sends instead of its bytes.
std::vector<Status> answers(const std::vector<Call>& calls, Meeting& meeting,
                            const std::function<std::string(size_t, std::string)>& alter = {}) {
  std::vector<Status> got(calls.size());
  std::vector<std::thread> ranks;
  for (size_t r = 0; r < calls.size(); ++r) {
    ranks.emplace_back([&, r] {
      const auto exchange = [&](const std::string& mine) { return meeting.exchange(r, alter ? alter(r, mine) : mine); };
      got[r] = agree(calls[r].function, calls[r].facts, calls[r].own, exchange);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return got;
}

std::string sentence(const Status& status) {
  return status.ok() ? "" : status.error().message;
}

TEST(Agree, RanksThatSayTheSameNeedOneSmallExchange) {
  for (const size_t ranks : {1, 2, 5}) {
    Meeting meeting(ranks);
    const Call call{"Grow", {{"count", "10"}, {"name", std::string(5000, 'x')}}};
    for (const Status& status : answers(std::vector<Call>(ranks, call), meeting)) EXPECT_EQ(sentence(status), "");
    EXPECT_EQ(meeting.bytes, std::vector<size_t>{16 * ranks});
  }
}

TEST(Agree, TheFirstDifferenceIsNamedOnAllRanks) {
  struct Row {
    std::vector<Call> calls;
    std::string sentence;
  };
  const Facts ten = {{"count", "10"}, {"op", "sum"}}, eleven = {{"count", "11"}, {"op", "avg"}};
  const std::string rule = "; it must be the same on all ranks";
  const std::vector<Row> rows = {
      {{{"Grow", ten}, {"Grow", ten}, {"Grow", eleven}}, "Grow: rank 2 has count=11, rank 0 has count=10" + rule},
      {{{"Grow", ten}, {"Grow", eleven}, {"Grow", eleven}, {"Grow", ten}},
       "Grow: rank 1 and 1 more have count=11, rank 0 has count=10" + rule},
      {{{"Grow", ten}, {"Grow", {{"count", "10"}}}}, "Grow: rank 1 has no op, rank 0 has op=sum" + rule},
      {{{"Grow", {{"op", "sum"}}}, {"Grow", ten}}, "Grow: rank 1 has count=10, rank 0 has no count" + rule},
      {{{"Grow", {{"op", ""}}}, {"Grow", {{"op", "sum"}}}}, "Grow: rank 1 has op=sum, rank 0 has op=(empty)" + rule},
      {{{"Grow", {{"rails", "2", "a,b", "two of them"}}}, {"Grow", {{"rails", "1", "c", "two of them"}}}},
       "Grow: rank 1 has rails=c, rank 0 has rails=a,b; two of them"}};
  for (const Row& row : rows) {
    Meeting meeting(row.calls.size());
    for (const Status& status : answers(row.calls, meeting)) {
      EXPECT_EQ(sentence(status), row.sentence);
      EXPECT_EQ(status.error().code, Code::kInvalidUsage);
    }
  }
}

TEST(Agree, RanksThatMakeOtherCallsHearBoth) {
  const std::vector<Call> calls = {{"Grow", {{"count", "1"}}}, {"Shrink"}};
  Meeting meeting(2);
  for (const Status& status : answers(calls, meeting))
    EXPECT_NE(sentence(status).find("rank 1 has the call=Shrink, rank 0 has the call=Grow"), std::string::npos);
}

TEST(Agree, WhatIsShownDoesNotCount) {
  Meeting meeting(2);
  const std::vector<Call> calls = {{"Grow", {{"rails", "1", "a"}}}, {"Grow", {{"rails", "1", "b"}}}};
  for (const Status& status : answers(calls, meeting)) EXPECT_EQ(sentence(status), "");
}

TEST(Agree, AFailureReachesAllRanksBeforeAnyDifference) {
  const Error no_room{Code::kSystemError, "Grow: no room"}, no_count{Code::kInvalidArgument, "no count"};
  const std::vector<Call> calls = {{"Grow", {{"count", "1"}}}, {"Grow", {}, no_room}, {"Grow", {}, no_count}};
  Meeting meeting(3);
  const std::vector<Status> got = answers(calls, meeting);
  EXPECT_EQ(sentence(got[0]), "Grow: rank 1 cannot take part: no room");
  EXPECT_EQ(got[0].error().code, Code::kSystemError);
  EXPECT_EQ(sentence(got[1]), no_room.message);
  EXPECT_EQ(sentence(got[2]), no_count.message);
  EXPECT_EQ(got[2].error().code, Code::kInvalidArgument);
  Meeting equal(2);
  for (const Status& status : answers(std::vector<Call>(2, {"Grow", {}, no_room}), equal))
    EXPECT_EQ(sentence(status), no_room.message);
}

TEST(Agree, NamesOfRanks) {
  const std::vector<Said> said = {{{}, {{"count", "1"}}}, {{}, {{"count", "2"}}}};
  EXPECT_EQ(sentence(compare_said("", said, {"rank 0 (host a)", "rank 1 (host b)"})),
            "rank 1 (host b) has count=2, rank 0 (host a) has count=1; it must be the same on all ranks");
}

TEST(Agree, BytesOfOtherRanksAreNotTrusted) {
  const Call call{"Grow", {{"count", "10"}}};
  for (const char filler : {'\0', '\x7f', '\xff'}) {
    Meeting meeting(2);
    const auto alter = [&](size_t rank, std::string mine) {
      const bool head = mine.size() == 16;
      // A digest that differs, then bytes that are no facts.
      if (rank == 1 && head) mine[0] ^= 1;
      if (rank == 1 && !head) mine.assign(mine.size(), filler);
      return mine;
    };
    const std::vector<Status> got = answers({call, call}, meeting, alter);
    EXPECT_FALSE(got[0].ok());
    EXPECT_EQ(sentence(got[0]), sentence(got[1]));
  }
  Meeting meeting(2);
  const auto huge = [](size_t rank, std::string mine) { return rank == 1 ? std::string(16, '\x7f') : mine; };
  EXPECT_EQ(answers({call, call}, meeting, huge)[0].error().code, Code::kRemoteError);
}

TEST(Agree, NumbersAreReadBackExactly) {
  EXPECT_EQ(exact_text(0.6), "0.6");
  EXPECT_EQ(exact_text(-1), "-1");
  EXPECT_EQ(std::stod(exact_text(0.1 + 0.2)), 0.1 + 0.2);
  EXPECT_NE(exact_text(0.1 + 0.2), exact_text(0.3));
}

}  // namespace
}  // namespace agree_test
}  // namespace trestle
