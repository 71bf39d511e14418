// What ranks publish of their rails, and the rails that two of them have in common.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/rng.h"
#include "transport/rails/pairing.h"

namespace trestle {
namespace {

std::vector<PublishedRail> list(const std::string& text) {
  auto rails = parse_published(text);
  EXPECT_TRUE(rails.ok()) << text << ": " << rails.error().message;
  return rails.ok() ? rails.value() : std::vector<PublishedRail>{};
}

TEST(Published, IsReadBack) {
  for (const char* text : {"10.0.0.1:5000", "[fd00::1]:5000", "10.0.0.1:1/24", "10.0.0.1:65535/0", "10.0.0.1:1/32",
                           "[fd00::1]:1/128@1g", "10.0.0.1:5/24,10.0.0.2:5/24#2,10.0.0.3:5/24#1000",
                           "10.0.0.1:5/24@25g,10.0.1.1:5/24@1500k,[fd00::1]:7/64#2@1g", "127.0.0.1:80/8"}) {
    const auto written = publish(list(text));
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(written.value(), text);
  }
  const std::vector<PublishedRail> rails = list("10.0.1.9:5/24@25g,10.0.0.9:6/16#2");
  EXPECT_EQ(rails[0].fabric.text(), "10.0.1.0/24");
  EXPECT_EQ(rails[0].address.port(), 5);
  EXPECT_EQ(rails[0].rate_bps, 25'000'000'000u);
  EXPECT_EQ(rails[1].fabric.text(), "10.0.0.0/16#2");
  EXPECT_EQ(rails[1].rate_bps, 0u);
  EXPECT_FALSE(list("10.0.0.1:5000")[0].fabric.is_known());
}

TEST(Published, EightOfTheLongestFit) {
  std::string v4;
  std::string v6;
  for (int i = 1; i <= 8; ++i) {
    const std::string end = i == 1 ? "@400g" : "#" + std::to_string(i) + "@400g";
    v4 += (i == 1 ? "" : ",") + std::string("192.168.100.10") + std::to_string(i) + ":65535/24" + end;
    v6 += (i == 1 ? "" : ",") + std::string("[2001:db8:aaaa:bbbb:cccc:dddd:eeee:fff") + std::to_string(i) +
          "]:65535/64" + end;
  }
  for (const std::string& text : {v4, v6}) {
    const auto written = publish(list(text));
    ASSERT_TRUE(written.ok()) << written.error().message;
    EXPECT_EQ(written.value(), text);
  }
}

TEST(Published, TooManyAreRefusedWithWhatToDo) {
  std::vector<PublishedRail> rails;
  for (int i = 1; i <= 17; ++i) {
    PublishedRail& rail = rails.emplace_back();
    rail.address = parse_address("10.0." + std::to_string(i) + ".1:5").value();
    rail.fabric = fabric_of(rail.address, 24);
  }
  const auto many = publish(rails);
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code, Code::kInvalidArgument);
  EXPECT_NE(many.error().message.find("at most 16 rails"), std::string::npos) << many.error().message;
  EXPECT_NE(many.error().message.find("fewer interfaces in TRESTLE_RAILS"), std::string::npos);
  rails.pop_back();
  EXPECT_TRUE(publish(rails).ok());
  for (PublishedRail& rail : rails) {
    rail.address = parse_address("[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:65535").value();
    rail.fabric = fabric_of(rail.address, 64);
  }
  EXPECT_FALSE(publish(rails).ok()) << "longer than 512 bytes";
}

TEST(Published, LiesAreRefusedWithTheirText) {
  struct Case {
    std::string text;
    const char* why;
  };
  std::string many;
  for (int i = 0; i < 17; ++i) many += (i == 0 ? "10.0." : ",10.0.") + std::to_string(i) + ".1:5/24";
  const Case kCases[] = {
      {"", "it is empty"},
      {",", "'' is not a rail"},
      {"10.0.0.1:5/24,", "'' is not a rail"},
      {"10.0.0.1", "its address is none"},
      {"10.0.0.1:0/24", "its address is none"},
      {"10.0.0.1:99999/24", "its address is none"},
      {"host:5/24", "its address is none"},
      {"10.1:5/24", "usual form"},
      {"010.0.0.1:5/24", "usual form"},
      {"[FD00::1]:5/64", "usual form"},
      {"10.0.0.1:05/24", "usual form"},
      {"[fe80::1]:5/64", "means nothing on another host"},
      {"10.0.0.1:5/", "'' is not the length of a network's prefix"},
      {"10.0.0.1:5/33", "'33' is not the length"},
      {"10.0.0.1:5/-1", "'-1' is not the length"},
      {"10.0.0.1:5/024", "'024' is not the length"},
      {"10.0.0.1:5/24x", "'24x' is not the length"},
      {"10.0.0.1:5/99999999999", "is not the length"},
      {"[fd00::1]:5/129", "'129' is not the length"},
      {"10.0.0.1:5/24#", "'' is not a place"},
      {"10.0.0.1:5/24#1", "'1' is not a place"},
      {"10.0.0.1:5/24#1001", "'1001' is not a place"},
      {"10.0.0.1:5/24@", "'' is not a rate"},
      {"10.0.0.1:5/24@0", "'0' is not a rate"},
      {"10.0.0.1:5/24@1g#2", "'1g#2' is not a rate"},
      {"10.0.0.1:5@1g", "its address is none"},
      {"10.0.0.1:5,10.0.1.1:5/24", "its fabric is missing"},
      {"10.0.1.1:5/24,10.0.0.1:5", "its fabric is missing"},
      {"10.0.0.1:5/24,10.0.0.1:5/16", "same address"},
      {"10.0.0.1:5/24,10.0.0.2:5/24", "on the same fabric, 10.0.0.0/24"},
      {"10.0.0.1:5/24#2,10.0.0.2:5/24#2", "on the same fabric, 10.0.0.0/24#2"},
      {many, "more than 16 rails"},
      {std::string(513, 'a'), "longer than 512 bytes"},
      {std::string("10.0.0.1:5/24\0", 14), "is not the length"},
      {"10.0.0.1:5/24\n", "is not the length"},
  };
  for (const Case& c : kCases) {
    const auto rails = parse_published(c.text);
    ASSERT_FALSE(rails.ok()) << c.text;
    EXPECT_EQ(rails.error().code, Code::kRemoteError);
    EXPECT_NE(rails.error().message.find(c.why), std::string::npos) << c.text << ": " << rails.error().message;
    EXPECT_TRUE(std::ranges::all_of(rails.error().message, [](char b) { return b >= ' ' && b <= '~'; })) << c.text;
    EXPECT_LT(rails.error().message.size(), 300u);
  }
}

// Bytes of good lists, changed at random: whatever is taken can be written and is the same again.
TEST(Published, ChangedBytesAreRefusedOrReadAsWritten) {
  const std::string good = "10.0.0.1:5/24@25g,10.0.1.1:5/24#2@1500k,[fd00::1]:7/64#2@1g";
  const std::string bytes = "0123456789abcdf.:/[]#@,gmk \n";
  int taken = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Rng rng(seed);
    std::string text = good;
    for (uint64_t changes = 1 + rng.below(3); changes > 0; --changes)
      text[rng.below(text.size())] = bytes[rng.below(bytes.size())];
    const auto rails = parse_published(text);
    if (!rails.ok()) continue;
    ++taken;
    const auto written = publish(rails.value());
    ASSERT_TRUE(written.ok()) << text;
    EXPECT_EQ(list(written.value()), rails.value()) << text;
  }
  EXPECT_GT(taken, 100);
}

Result<RailPairs> pair_of(const std::vector<PublishedRail>& mine, const std::vector<PublishedRail>& theirs) {
  return pair_rails({"rank 0 (a)", mine}, {"rank 1 (b)", theirs});
}

// "0-1 1-0": places of each pair.
std::string pairs_text(const std::vector<PublishedRail>& mine, const std::vector<PublishedRail>& theirs) {
  const auto pairs = pair_of(mine, theirs);
  if (!pairs.ok()) return "none";
  std::string text;
  for (const RailPair& pair : pairs.value().pairs)
    text += (text.empty() ? "" : " ") + std::to_string(pair.mine) + "-" + std::to_string(pair.theirs);
  return text;
}

TEST(Pairing, IsByFabricAndInItsOrder) {
  struct Case {
    const char* mine;
    const char* theirs;
    const char* pairs;
  };
  const Case kCases[] = {
      {"10.0.0.1:1/24,10.0.1.1:1/24", "10.0.0.2:1/24,10.0.1.2:1/24", "0-0 1-1"},
      {"10.0.1.1:1/24,10.0.0.1:1/24", "10.0.0.2:1/24,10.0.1.2:1/24", "1-0 0-1"},
      {"10.0.10.1:1/24,10.0.9.1:1/24", "10.0.9.2:1/24,10.0.10.2:1/24", "1-0 0-1"},  // by number, not by text
      {"10.0.0.1:1/24,10.0.1.1:1/24", "10.0.1.2:1/24", "1-0"},
      {"10.0.0.1:1/24", "10.0.0.2:1/24,10.0.0.3:1/24#2", "0-0"},
      {"10.0.0.1:1/24,10.0.0.4:1/24#2", "10.0.0.3:1/24#2,10.0.0.2:1/24", "0-1 1-0"},
      {"10.0.0.1:1/24,10.0.1.1:1/24", "10.0.0.2:1/16,10.0.1.2:1/24", "1-1"},  // other prefixes are other fabrics
      {"10.0.0.1:1/24,[fd00::1]:1/64", "[fd00::2]:1/64,10.9.0.1:1/24", "1-0"},
      {"10.0.0.1:1", "10.9.0.2:1", "0-0"},
      {"10.0.0.1:1", "10.9.0.2:1/24", "0-0"},
      {"10.0.0.1:1/24", "10.9.0.2:1/24", "0-0"},  // there is nothing to choose; a router may join them
      {"10.0.0.1:1/24", "[fd00::1]:1/64", "none"},
      {"10.0.0.1:1", "10.0.0.2:1/24,10.0.1.2:1/24", "none"},
      {"10.0.0.1:1/24,10.0.1.1:1/24", "10.0.2.2:1/24,10.0.3.2:1/24", "none"},
      {"10.0.0.1:1/24,10.0.1.1:1/24", "10.0.2.2:1/24", "none"},
  };
  for (const Case& c : kCases)
    EXPECT_EQ(pairs_text(list(c.mine), list(c.theirs)), c.pairs) << c.mine << " " << c.theirs;
}

TEST(Pairing, TheRateIsTheLesserOfThoseThatAreKnown) {
  const auto pairs = pair_of(list("10.0.0.1:1/24@25g,10.0.1.1:1/24@1g,10.0.2.1:1/24,10.0.3.1:1/24"),
                             list("10.0.0.2:1/24@10g,10.0.1.2:1/24,10.0.2.2:1/24@2g,10.0.3.2:1/24"));
  ASSERT_TRUE(pairs.ok()) << pairs.error().message;
  const uint64_t kRates[] = {10'000'000'000, 1'000'000'000, 2'000'000'000, 0};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(pairs.value().pairs[i].rate_bps, kRates[i]) << i;
}

TEST(Pairing, ThoseWithoutAPartnerHaveAReason) {
  const auto pairs = pair_of(list("10.0.0.1:1/24,10.0.1.1:1/24"), list("10.0.0.2:1/24,10.0.2.2:1/24#2"));
  ASSERT_TRUE(pairs.ok()) << pairs.error().message;
  const std::vector<UnpairedRail>& unpaired = pairs.value().unpaired;
  ASSERT_EQ(unpaired.size(), 2u);
  EXPECT_TRUE(unpaired[0].is_mine);
  EXPECT_EQ(unpaired[0].place, 1u);
  EXPECT_EQ(unpaired[0].reason, "rank 1 (b) has no rail in 10.0.1.0/24");
  EXPECT_FALSE(unpaired[1].is_mine);
  EXPECT_EQ(unpaired[1].place, 1u);
  EXPECT_EQ(unpaired[1].reason, "rank 0 (a) has no rail in 10.0.2.0/24#2");
}

TEST(Pairing, NoneInCommonNamesBothAndWhatTheyHave) {
  const auto pairs = pair_of(list("10.0.0.1:1"), list("10.0.2.2:1/24,[fd00::2]:1/64"));
  ASSERT_FALSE(pairs.ok());
  EXPECT_EQ(pairs.error().code, Code::kInvalidUsage);
  EXPECT_EQ(pairs.error().message,
            "rank 0 (a) and rank 1 (b) have no rail in common: rank 0 (a) has 10.0.0.1 in an unnamed network; rank 1 "
            "(b) has 10.0.2.2 in 10.0.2.0/24, [fd00::2] in fd00::/64");
}

// A list of at most `most` rails on some of 12 fabrics, in random order.
std::vector<PublishedRail> random_list(Rng& rng, uint64_t host) {
  std::vector<PublishedRail> rails;
  for (uint64_t f = 0; f < 12; ++f) {
    if (rng.below(3) != 0) continue;
    PublishedRail& rail = rails.emplace_back();
    const std::string ends = std::to_string(f % 4) + (f % 8 < 4 ? "." : "::") + std::to_string(host);
    rail.address = parse_address(f % 8 < 4 ? "10.0." + ends + ":" + std::to_string(f + 1)
                                           : "[fd00:" + ends + "]:" + std::to_string(f + 1))
                       .value();
    rail.fabric = fabric_of(rail.address, f % 8 < 4 ? 24 : 64);
    if (f >= 8) rail.fabric.place = 2;
    if (rng.below(2) != 0) rail.rate_bps = (1 + rng.below(100)) * 1'000'000'000;
  }
  for (size_t i = rails.size(); i > 1; --i) std::swap(rails[i - 1], rails[rng.below(i)]);
  return rails;
}

std::set<Fabric> fabrics_of(const std::vector<PublishedRail>& rails) {
  std::set<Fabric> fabrics;
  for (const PublishedRail& rail : rails) fabrics.insert(rail.fabric);
  return fabrics;
}

TEST(Pairing, BothRanksComputeTheSame) {
  int paired = 0;
  int unequal = 0;
  for (uint64_t seed = 0; seed < 5'000; ++seed) {
    Rng rng(seed);
    const std::vector<PublishedRail> a = random_list(rng, 1);
    const std::vector<PublishedRail> b = random_list(rng, 2);
    if (a.empty() || b.empty()) continue;
    EXPECT_EQ(list(publish(a).value()), a);
    const auto here = pair_of(a, b);
    const auto there = pair_of(b, a);
    ASSERT_EQ(here.ok(), there.ok()) << seed;
    std::vector<Fabric> both;
    std::ranges::set_intersection(fabrics_of(a), fabrics_of(b), std::back_inserter(both));
    const bool only_ones = a.size() == 1 && b.size() == 1;
    EXPECT_TRUE(only_ones || here.ok() == !both.empty()) << seed;
    if (!here.ok()) continue;
    ++paired;
    unequal += a.size() != b.size();
    const auto& pairs = here.value().pairs;
    ASSERT_EQ(pairs.size(), there.value().pairs.size()) << seed;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const RailPair turned{there.value().pairs[i].theirs, there.value().pairs[i].mine,
                            there.value().pairs[i].rate_bps};
      EXPECT_EQ(pairs[i], turned) << seed;
      EXPECT_TRUE(both.empty() || a[pairs[i].mine].fabric == both[i]) << seed;
    }
    EXPECT_EQ(here.value().unpaired.size(), a.size() + b.size() - 2 * pairs.size()) << seed;
    EXPECT_EQ(there.value().unpaired.size(), here.value().unpaired.size()) << seed;
  }
  EXPECT_GT(paired, 1'000);
  EXPECT_GT(unequal, 500);
}

TEST(Pairing, AHostIsKnownByAllItsAddresses) {
  const auto one_host = [](const std::string& mine, const std::string& theirs) {
    EXPECT_EQ(are_of_one_host(list(mine), list(theirs)), are_of_one_host(list(theirs), list(mine)));
    return are_of_one_host(list(mine), list(theirs));
  };
  EXPECT_TRUE(one_host("10.0.0.1:5/24,10.0.1.1:5/24", "10.0.1.1:7/24,10.0.0.1:8/24"));
  EXPECT_TRUE(one_host("10.0.0.1:5/24,10.0.1.1:5/24", "10.0.1.1:7/24")) << "it may use fewer of them";
  EXPECT_FALSE(one_host("10.0.0.1:5/24,10.0.1.1:5/24", "10.0.0.1:5/24,10.0.1.2:5/24")) << "one may be everywhere alike";
  EXPECT_FALSE(one_host("10.0.0.1:5/24", "10.0.0.2:5/24"));
  EXPECT_TRUE(one_host("[fd00::1]:5/64,[fd00:1::1]:5/64", "[fd00:1::1]:7/64,[fd00::1]:8/64"));
  EXPECT_FALSE(one_host("[fd00::1]:5/64,[fd00:1::1]:5/64", "[fd00::1]:7/64,[fd00:1::2]:8/64"));
  EXPECT_TRUE(one_host("[::ffff:10.0.0.1]:5/120", "10.0.0.1:7/24")) << "the same address in another form";
}

}  // namespace
}  // namespace trestle
