// The bytes that bootstrap sends and stores, its handling of invalid bytes, and the all-gather without a network.
#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"
#include "control_mesh/dissemination.h"
#include "rendezvous/message.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/unique_id.h"

namespace trestle {
namespace codec_test {
namespace {

UniqueId sample_id(const std::vector<std::string>& addresses) {
  UniqueId id;
  for (const std::string& one : addresses) id.addresses.push_back(parse_address(one).value());
  id.network = 77;
  for (size_t i = 0; i < id.job.size(); ++i) id.job[i] = static_cast<std::byte>(i + 1);
  for (size_t i = 0; i < id.secret.size(); ++i) id.secret[i] = static_cast<std::byte>(200 - i);
  return id;
}

RankInfo sample_info(int32_t rank) {
  RankInfo info;
  info.rank = rank;
  info.place = {"node" + std::to_string(rank), "node/boot/4026531840", 77, "boot", {0xf0, 3}};
  info.pid = 4321;
  info.addresses = {{"tcp", "10.0.0.1:5000"}, {"shm", std::string("\0name", 5)}};
  info.agreed.facts = {{"TRESTLE_ALGO", ""}, {"TRESTLE_EAGER", "16K"}, rails_fact("eth0@25g,eth1").value()};
  return info;
}

TEST(UniqueIdTest, RoundTrip) {
  const std::vector<std::vector<std::string>> kLists = {
      {"127.0.0.1:1"},
      {"[2001:db8::7]:65535"},
      {"10.1.2.3:51234", "[::1]:5", "[fd00::1]:6", "192.168.0.1:7"},
      {"10.0.0.1:1", "10.0.0.2:2", "10.0.0.3:3", "10.0.0.4:4", "10.0.0.5:5", "10.0.0.6:6", "10.0.0.7:7"}};
  for (const std::vector<std::string>& addresses : kLists) {
    const auto bytes = encode(sample_id(addresses));
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    EXPECT_FALSE(is_zero(bytes.value()));
    const auto decoded = decode(bytes.value());
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded.value(), sample_id(addresses));
  }
  EXPECT_EQ(addresses_text(sample_id(kLists[2])), "10.1.2.3:51234, [::1]:5, [fd00::1]:6, 192.168.0.1:7");
  EXPECT_FALSE(encode(UniqueId{}).ok());
  EXPECT_TRUE(is_zero(UniqueIdBytes{}));
  EXPECT_FALSE(decode(UniqueIdBytes{}).ok());
}

TEST(UniqueIdTest, HasAsManyAddressesAsFit) {
  UniqueId id = sample_id({"[fd00::1]:1", "[fd00::2]:2", "10.0.0.1:3", "10.0.0.2:4", "10.0.0.3:5"});
  const UniqueId told = decode(encode(id).value()).value();
  id.addresses.pop_back();
  EXPECT_EQ(told, id);
}

TEST(UniqueIdTest, EveryChangedByteIsNoticed) {
  const UniqueIdBytes bytes = encode(sample_id({"10.1.2.3:51234"})).value();
  for (size_t i = 0; i < bytes.size(); ++i) {
    UniqueIdBytes changed = bytes;
    changed[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode(changed).ok()) << i;
  }
}

TEST(RankInfoTest, RoundTrip) {
  const auto decoded = decode_rank_info(encode(sample_info(3)));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(encode(decoded.value()), encode(sample_info(3)));
  EXPECT_EQ(decoded.value().addresses, sample_info(3).addresses);
  EXPECT_EQ(decoded.value().agreed.facts, sample_info(3).agreed.facts);
  EXPECT_EQ(rank_name(decoded.value()), "rank 3 (host node3, pid 4321)");
}

TEST(RankInfoTest, TruncatedAndLongerOnesAreRefused) {
  const std::string bytes = encode(sample_info(3));
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_rank_info(bytes.substr(0, length)).ok()) << length;
  EXPECT_FALSE(decode_rank_info(bytes + "x").ok());
  EXPECT_FALSE(decode_rank_info(std::string(kMaxRankInfoBytes + 1, '\0')).ok());
}

TEST(RankInfoTest, DamagedOnesNeverCrash) {
  const std::string bytes = encode(sample_info(3));
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (uint64_t changes = 1 + rng.below(4); changes > 0; --changes)
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.next());
    const auto decoded = decode_rank_info(damaged);
    EXPECT_TRUE(!decoded.ok() || decoded.value().addresses.size() <= damaged.size());
    (void)decode_join_request(damaged);
    (void)decode_join_answer(damaged);
    (void)decode_join_report(damaged);
  }
}

TEST(RankInfoTest, TokenIsTheSameWithinAProcess) {
  EXPECT_EQ(process_token(), process_token());
  EXPECT_NE(process_token(), 0u);
}

TEST(CompareTest, DifferencesAreNamed) {
  std::vector<RankInfo> infos = {sample_info(0), sample_info(1), sample_info(2)};
  EXPECT_TRUE(compare_configuration(infos).ok());
  infos[2].agreed.facts[1].value = "64K";
  const Status status = compare_configuration(infos);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(
      status.error().message,
      "rank 2 (host node2, pid 4321) has TRESTLE_EAGER=64K, rank 0 (host node0, pid 4321) has TRESTLE_EAGER=16K; it "
      "must be the same on all ranks");
}

TEST(CompareTest, RailsMayHaveOtherNamesButNotOtherDimensions) {
  const std::vector<RankInfo> infos = {sample_info(0), sample_info(1), sample_info(2)};
  const auto with = [&](const char* first, const char* third) {
    std::vector<RankInfo> changed = infos;
    changed[0].agreed.facts[2] = changed[1].agreed.facts[2] = rails_fact(first).value();
    changed[2].agreed.facts[2] = rails_fact(third).value();
    return compare_configuration(changed);
  };
  EXPECT_TRUE(with("eth0@25g,eth1", "p1").ok());
  EXPECT_TRUE(with("shm;eth0", " shm ; p1@1g , p2").ok());
  EXPECT_TRUE(with("", " ").ok());
  const Status differ = with("shm;eth0", "p1");
  ASSERT_FALSE(differ.ok());
  EXPECT_EQ(differ.error().code, Code::kInvalidUsage);
  EXPECT_EQ(
      differ.error().message,
      "rank 2 (host node2, pid 4321) has TRESTLE_RAILS=p1, rank 0 (host node0, pid 4321) has "
      "TRESTLE_RAILS=shm;eth0; interfaces may differ, but for which dimensions there are some, and the transports "
      "of the others, must be the same on all ranks");
  EXPECT_FALSE(with("eth0", "").ok());
  EXPECT_FALSE(with("eth0", "eth0;eth0").ok());
  std::vector<RankInfo> unreadable = infos;
  unreadable[2].agreed.own = rails_fact("eth0@fast").error();
  const Status told = compare_configuration(unreadable);
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().code, Code::kInvalidArgument);
  EXPECT_EQ(
      told.error().message.find("rank 2 (host node2, pid 4321) cannot take part: TRESTLE_RAILS=eth0@fast: 'eth0@fast'"),
      0u)
      << told.error().message;
}

TEST(JoinMessageTest, LongSentencesAreCutAndStillRead) {
  const Error error{Code::kSystemError, std::string(100'000, 'x')};
  const auto report = decode_join_report(encode(JoinReport{error}));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().error.message, std::string(16 * 1024, 'x'));
  JoinAnswer answer;
  answer.error = error;
  const auto heard = decode_join_answer(encode(answer));
  ASSERT_TRUE(heard.ok());
  EXPECT_EQ(heard.value().error.message, report.value().error.message);
}

TEST(JoinMessageTest, RoundTripAndRankLists) {
  JoinRequest request{
      100, 8, 3, 12345, "127.0.0.1:99", "rank 3 (host a, pid 12)", {uint64_t{1} << 63, 5}, "boot/7", "eth0: down"};
  const auto decoded = decode_join_request(encode(request));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded.value().address, request.address);
  EXPECT_EQ(decoded.value().name, request.name);
  EXPECT_EQ(decoded.value().lineage, request.lineage);
  EXPECT_EQ(decoded.value().network, request.network);
  EXPECT_EQ(decoded.value().only_here, request.only_here);
  JoinAnswer answer;
  answer.addresses = {"a", "b"};
  answer.names = {"rank 1 (host a, pid 1)", "", "rank 2"};
  answer.holder = "rank 0";
  answer.progress = "1 of 2";
  answer.job.fill(std::byte{7});
  EXPECT_EQ(decode_join_answer(encode(answer)).value().names, answer.names);
  EXPECT_EQ(decode_join_answer(encode(answer)).value().holder, answer.holder);
  EXPECT_EQ(decode_join_answer(encode(answer)).value().progress, answer.progress);
  EXPECT_EQ(decode_join_answer(encode(answer)).value().job, answer.job);
  const JoinReport report{{Code::kTimeout, "too late"}};
  EXPECT_EQ(decode_join_report(encode(report)).value().error.message, report.error.message);
  EXPECT_EQ(decode_join_report(encode(report)).value().error.code, report.error.code);
  EXPECT_EQ(decode_join_answer(encode(answer)).value().addresses, answer.addresses);
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({1, 4, 6}), "ranks 1, 4 and 6");
  std::vector<int32_t> many(40);
  for (int32_t i = 0; i < 40; ++i) many[static_cast<size_t>(i)] = i;
  EXPECT_TRUE(rank_list(many).ends_with("15 and 24 more"));
}

// All ranks run in one loop. Messages are delivered in a seeded random order, and some ranks start late.
TEST(DisseminationTest, EveryOrderOfMessagesGivesAllBlobs) {
  struct Mail {
    int32_t to;
    int step;
    std::string payload;
  };
  Rng rng(7);
  for (int32_t ranks = 1; ranks <= 33; ++ranks) {
    std::deque<Dissemination> all;
    for (int32_t r = 0; r < ranks; ++r) all.emplace_back(r, ranks);
    std::vector<Mail> post;
    std::vector<int32_t> unstarted;
    for (int32_t r = 0; r < ranks; ++r) unstarted.push_back(r);
    const auto advance = [&](int32_t r) {
      bool sane = true;
      for (auto& message : all[static_cast<size_t>(r)].advance(sane))
        post.push_back(
            {static_cast<int32_t>((r + (int64_t{1} << message.step)) % ranks), message.step, message.payload});
      EXPECT_TRUE(sane);
    };
    while (!post.empty() || !unstarted.empty()) {
      const uint64_t pick = rng.below(post.size() + unstarted.size());
      if (pick < unstarted.size()) {
        const int32_t r = unstarted[pick];
        unstarted.erase(unstarted.begin() + static_cast<std::ptrdiff_t>(pick));
        all[static_cast<size_t>(r)].start("blob " + std::to_string(r));
        advance(r);
        continue;
      }
      const auto at = post.begin() + static_cast<std::ptrdiff_t>(pick - unstarted.size());
      Mail mail = *at;
      post.erase(at);
      EXPECT_TRUE(all[static_cast<size_t>(mail.to)].receive(mail.step, mail.payload));
      advance(mail.to);
    }
    for (int32_t r = 0; r < ranks; ++r) {
      ASSERT_TRUE(all[static_cast<size_t>(r)].done());
      const auto blobs = all[static_cast<size_t>(r)].take_blobs();
      for (int32_t i = 0; i < ranks; ++i) EXPECT_EQ(blobs[static_cast<size_t>(i)], "blob " + std::to_string(i));
    }
  }
}

TEST(DisseminationTest, NonsenseIsNoticed) {
  Dissemination gather(0, 4);
  EXPECT_FALSE(gather.receive(2, ""));
  EXPECT_FALSE(gather.receive(-1, ""));
  EXPECT_TRUE(gather.receive(0, "not a blob"));
  EXPECT_FALSE(gather.receive(0, "twice"));
  gather.start("mine");
  bool sane = true;
  (void)gather.advance(sane);
  EXPECT_FALSE(sane);
}

}  // namespace
}  // namespace codec_test
}  // namespace trestle
