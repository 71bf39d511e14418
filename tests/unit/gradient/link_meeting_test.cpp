// Ranks meet over notices that are late, come twice, and overtake each other. A verdict reaches all of them, and no
// notice of one meeting counts in the next one.
#include "gradient/executor/links/link_meeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/rng.h"

namespace trestle {
namespace {

using Lists = std::vector<std::vector<std::string>>;  // by rank: the communicators that it gives

// The notices of some communicators, as src/comm/watch/notices.h keeps them: the one with the highest number counts.
class Network {
 public:
  explicit Network(uint64_t seed) : rng_(seed) {}

  void leave(const std::string& link, int from, int to, const std::string& text) {
    const Letter letter{link, from, to, ++sent_, text};
    for (int copy = 0; copy < 2; ++copy) under_way_.push_back(letter);
  }
  std::string latest(const std::string& link, int from, int to) const {
    const auto found = kept_.find({link, from, to});
    return found == kept_.end() ? "" : found->second.second;
  }
  // Any one of the letters arrives.
  bool deliver() {
    if (under_way_.empty()) return false;
    const size_t which = rng_.below(under_way_.size());
    const Letter letter = under_way_[which];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
    auto& [number, text] = kept_[{letter.link, letter.from, letter.to}];
    if (letter.number > number) std::tie(number, text) = std::tuple(letter.number, letter.text);
    return true;
  }
  uint64_t below(uint64_t end) { return rng_.below(end); }

 private:
  struct Letter {
    std::string link;
    int from = 0, to = 0;
    uint64_t number = 0;
    std::string text;
  };
  Rng rng_;
  uint64_t sent_ = 0;
  std::vector<Letter> under_way_;
  std::map<std::tuple<std::string, int, int>, std::pair<uint64_t, std::string>> kept_;
};

// A rank that makes calls with these lists, one after the other.
class Rank {
 public:
  Rank(Network& network, JudgedMeetings& judged, int rank, int ranks, Lists calls)
      : network_(network), judged_(judged), rank_(rank), ranks_(ranks), calls_(std::move(calls)) {}

  bool ended() const { return results.size() == calls_.size(); }
  void turn() {
    if (ended()) return;
    const std::vector<std::string>& links = calls_[results.size()];
    const auto leave = [&](size_t link, int to, const std::string& text) {
      network_.leave(links[link], rank_, to, text);
    };
    const auto latest = [&](size_t link, int from) { return network_.latest(links[link], from, rank_); };
    if (meeting_ == nullptr) {
      const uint64_t number = 1'000'000 * static_cast<uint64_t>(rank_ + 1) + results.size();
      meeting_ = std::make_unique<LinkMeeting>(LinkAccess::Place{rank_, ranks_, links}, number, judged_);
      meeting_->come(leave);
    }
    if (!meeting_->look(latest, leave)) return;
    meeting_->go(leave);
    results.push_back(meeting_->result());
    meeting_.reset();
  }
  bool waits() const { return meeting_ != nullptr; }

  std::vector<Status> results;

 private:
  Network& network_;
  JudgedMeetings& judged_;
  const int rank_;
  const int ranks_;
  const Lists calls_;
  std::unique_ptr<LinkMeeting> meeting_;
};

// calls: by call, of all ranks. The results by rank and call. Those that no rank can end stay away.
std::vector<std::vector<Status>> meet(const std::vector<Lists>& calls, uint64_t seed) {
  Network network(seed);
  JudgedMeetings judged;
  const auto ranks = static_cast<int>(calls.front().size());
  std::vector<Rank> all;
  for (int rank = 0; rank < ranks; ++rank) {
    Lists own;
    for (const Lists& call : calls) own.push_back(call[static_cast<size_t>(rank)]);
    all.emplace_back(network, judged, rank, ranks, own);
  }
  const auto ended = [&] { return std::ranges::all_of(all, &Rank::ended); };
  for (int turn = 0; turn < 20'000 && !ended(); ++turn) {
    all[network.below(all.size())].turn();
    if (network.below(3) == 0) network.deliver();
  }
  std::vector<std::vector<Status>> results;
  for (Rank& one : all) results.push_back(std::move(one.results));
  return results;
}

void expect_all(const std::vector<std::vector<Status>>& results, size_t call, const std::string& fact) {
  for (size_t rank = 0; rank < results.size(); ++rank) {
    ASSERT_GT(results[rank].size(), call) << "rank " << rank << " waits in call " << call;
    const Status& status = results[rank][call];
    EXPECT_EQ(status.ok(), fact.empty()) << "rank " << rank << ", call " << call;
    if (status.ok() || fact.empty()) continue;
    EXPECT_EQ(status.error().code, Code::kInvalidUsage);
    EXPECT_NE(status.error().message.find(fact), std::string::npos) << status.error().message;
    EXPECT_EQ(status.error().message, results[0][call].error().message) << "rank " << rank;
  }
}

TEST(LinkMeeting, TheSameListsMeet) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const auto results = meet({{{"A"}, {"A"}}, {{"A", "B"}, {"A", "B"}}, {{"B", "A"}, {"B", "A"}}}, seed);
    for (size_t call = 0; call < 3; ++call) expect_all(results, call, "");
  }
}

TEST(LinkMeeting, ARankMeetsItself) {
  expect_all(meet({{{"A", "B"}}}, 1), 0, "");
}

TEST(LinkMeeting, EveryDifferenceIsToldToAllRanks) {
  const struct {
    Lists lists;
    const char* fact;
  } rows[] = {
      {{{"A", "B"}, {"B"}}, "rank 0 gave GradCreate 2 communicators, and rank 1 gave 1 (link 1 of rank 0)"},
      {{{"B"}, {"A", "B"}}, "1 communicator, and rank 1 gave 2 (one that rank 0 did not give, link 0 of rank 0)"},
      {{{"A", "B"}, {"A"}}, "rank 1 gave 1 (link 0 of rank 0)"},
      {{{"A"}, {"A", "B"}}, "rank 1 gave 2 (link 0 of rank 0, one that"},
      {{{"A", "B"}, {"B", "A"}}, "rank 1 gave 2 (link 1 of rank 0, link 0 of rank 0)"},
      {{{"A", "B"}, {"A", "B"}, {"B"}, {"A"}}, "rank 2 gave 1 (link 1 of rank 0)"},
      {{{"A", "B", "C"}, {"C"}, {"A"}, {"B"}}, "rank 1 gave 1 (link 2 of rank 0)"},
  };
  for (const auto& row : rows) {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      SCOPED_TRACE(testing::Message() << row.fact << ", seed " << seed);
      expect_all(meet({row.lists}, seed), 0, row.fact);
    }
  }
}

// The notice that a refused rank left on A must not count when A alone is given next.
TEST(LinkMeeting, NothingStaysBehind) {
  const Lists other = {{"B"}, {"A", "B"}, {"A", "B"}};
  const Lists first = {{"A"}, {"A"}, {"A"}}, second = {{"B"}, {"B"}, {"B"}};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const auto results = meet({other, first, second, other, second, first}, seed);
    for (const size_t call : {0, 3}) expect_all(results, call, "rank 1 gave 2");
    for (const size_t call : {1, 2, 4, 5}) expect_all(results, call, "");
  }
}

TEST(LinkMeeting, RandomListsWithOneInCommon) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<Lists> calls(4);
    std::vector<bool> same;
    for (Lists& call : calls) {
      for (int rank = 0; rank < 4; ++rank) {
        std::vector<std::string> list = {"A"};
        if (rng.below(4) == 0) list.insert(list.begin(), "B");
        if (rng.below(4) == 0) list.emplace_back("C");
        call.push_back(list);
      }
      if (rng.below(2) == 0) call.assign(4, call.front());
      same.push_back(std::ranges::all_of(call, [&](const auto& list) { return list == call.front(); }));
    }
    const auto results = meet(calls, seed);
    for (size_t call = 0; call < calls.size(); ++call) expect_all(results, call, same[call] ? "" : "rank 0 gave");
  }
}

TEST(LinkMeeting, MalformedNoticesAreIgnored) {
  JudgedMeetings judged;
  const auto nobody = [](size_t, int, const std::string&) {};
  for (const char* text : {"", " ", "come", "come x", "come 1x A", "same", "differ 7", "gone 1", "\xff\n"}) {
    LinkMeeting meeting({0, 2, {"A"}}, 1, judged);
    EXPECT_FALSE(meeting.look([&](size_t, int) { return std::string(text); }, nobody)) << text;
    EXPECT_EQ(meeting.awaited(), 1);
    LinkMeeting other({1, 2, {"A"}}, 2, judged);
    EXPECT_FALSE(other.look([&](size_t, int) { return std::string(text); }, nobody)) << text;
    EXPECT_EQ(other.awaited(), 0);
  }
}

}  // namespace
}  // namespace trestle
