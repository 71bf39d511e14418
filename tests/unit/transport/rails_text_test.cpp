// The grammar of TRESTLE_RAILS.
#include <gtest/gtest.h>

#include <limits>

#include "transport/rails/rails_text.h"

namespace trestle {
namespace {

using Rails = std::vector<DimensionRails>;

DimensionRails kind(const char* name) {
  return {parse_transport(name).value(), {}};
}
DimensionRails interfaces(std::vector<NamedInterface> names) {
  return {TransportKind::kAuto, std::move(names)};
}

TEST(RailsText, SaysInterfacesRatesAndKinds) {
  struct Case {
    const char* text;
    Rails rails;
  };
  const Case kCases[] = {
      {"", {}},
      {"  ", {}},
      {"eth0", {interfaces({{"eth0"}})}},
      {"eth0,eth1", {interfaces({{"eth0"}, {"eth1"}})}},
      {"eth1,eth0", {interfaces({{"eth1"}, {"eth0"}})}},
      {"eth0@25g", {interfaces({{"eth0", 25'000'000'000}})}},
      {"eth0@2.5G", {interfaces({{"eth0", 2'500'000'000}})}},
      {"eth0@1.5m,eth1@1500k", {interfaces({{"eth0", 1'500'000}, {"eth1", 1'500'000}})}},
      {"eth0@1000000", {interfaces({{"eth0", 1'000'000}})}},
      {"eth0@1000000g", {interfaces({{"eth0", 1'000'000'000'000'000}})}},
      {"shm;eth0,eth1", {kind("shm"), interfaces({{"eth0"}, {"eth1"}})}},
      {"auto;tcp", {kind("auto"), kind("tcp")}},
      {"eth0;eth0", {interfaces({{"eth0"}}), interfaces({{"eth0"}})}},
      {" shm ;\teth0 @ 25g , eth1 ", {kind("shm"), interfaces({{"eth0", 25'000'000'000}, {"eth1"}})}},
      {"enp1s0f0np0.100,br-1_a", {interfaces({{"enp1s0f0np0.100"}, {"br-1_a"}})}},
  };
  for (const Case& c : kCases) {
    const auto rails = parse_rails(c.text);
    ASSERT_TRUE(rails.ok()) << c.text << ": " << rails.error().message;
    EXPECT_EQ(rails.value(), c.rails) << c.text;
  }
}

TEST(RailsText, InterfacesCanBeReadBack) {
  for (const char* text : {"", "eth0", "eth0,eth1@25g", "eth0@2500m,eth1@800m,eth2@1g"}) {
    EXPECT_EQ(interfaces_text(rails_of_dimension(parse_rails(text).value(), 0).interfaces), text);
  }
}

TEST(RailsText, NonsenseIsRefusedWithTheItem) {
  struct Case {
    const char* text;
    const char* item;
    const char* why;
  };
  const Case kCases[] = {
      {",", "''", "between two ,"},
      {"eth0,", "''", "'eth0,'"},
      {"eth0,,eth1", "''", "'eth0,,eth1'"},
      {"eth0, ,eth1", "''", "between two ,"},
      {";", "''", "between two ;"},
      {"shm;", "''", "'shm;'"},
      {"shm; ;eth0", "''", "between two ;"},
      {"eth0,eth0", "'eth0'", "twice"},
      {"eth0,eth1,eth0@1g", "'eth0@1g'", "twice"},
      {"shm;eth0@1g,eth0@2g", "'eth0@2g'", "twice"},
      {"shm,eth0", "'shm'", "stands alone"},
      {"eth0,tcp", "'tcp'", "stands alone"},
      {"tcp@25g", "'tcp@25g'", "has no rate"},
      {"@25g", "'@25g'", "interface is missing"},
      {"eth0@", "'eth0@'", "'' is not a rate"},
      {"eth0@fast", "'eth0@fast'", "'fast' is not a rate"},
      {"eth0@0", "'eth0@0'", "'0' is not a rate"},
      {"eth0@0g", "'eth0@0g'", "'0g' is not a rate"},
      {"eth0@25", "'eth0@25'", "from 1m to 1000000g"},
      {"eth0@999k", "'eth0@999k'", "'999k' is not a rate"},
      {"eth0@1000001g", "'eth0@1000001g'", "'1000001g' is not a rate"},
      {"eth0@99999999999999999999999999g", "'eth0@", "is not a rate"},
      {"eth0@-1g", "'eth0@-1g'", "'-1g' is not a rate"},
      {"eth0@+1g", "'eth0@+1g'", "'+1g' is not a rate"},
      {"eth0@1e3g", "'eth0@1e3g'", "'1e3g' is not a rate"},
      {"eth0@nan", "'eth0@nan'", "'nan' is not a rate"},
      {"eth0@inf", "'eth0@inf'", "'inf' is not a rate"},
      {"eth0@1.2.3g", "'eth0@1.2.3g'", "'1.2.3g' is not a rate"},
      {"eth0@.g", "'eth0@.g'", "'.g' is not a rate"},
      {"eth0@25gb", "'eth0@25gb'", "'25gb' is not a rate"},
      {"eth0@25t", "'eth0@25t'", "'25t' is not a rate"},
      {"eth0@2 5g", "'eth0@2 5g'", "'2 5g' is not a rate"},
      {"eth0@1g@2g", "'eth0@1g@2g'", "'1g@2g' is not a rate"},
      {"=eth0", "'=eth0'", "TRESTLE_SOCKET_IFNAME"},
      {"^eth0", "'^eth0'", "TRESTLE_SOCKET_IFNAME"},
      {"eth0 eth1", "'eth0 eth1'", "no interface has such a name"},
      {"10.0.0.1:80", "'10.0.0.1:80'", "no interface has such a name"},
      {"../net", "'../net'", "no interface has such a name"},
      {"..", "'..'", "no interface has such a name"},
      {"sixteen-bytes-in", "'sixteen-bytes-in'", "15 bytes"},
  };
  for (const Case& c : kCases) {
    const auto rails = parse_rails(c.text);
    ASSERT_FALSE(rails.ok()) << c.text;
    EXPECT_EQ(rails.error().code, Code::kInvalidArgument);
    const std::string& message = rails.error().message;
    EXPECT_TRUE(message.starts_with(c.item)) << c.text << ": " << message;
    EXPECT_NE(message.find(c.why), std::string::npos) << c.text << ": " << message;
  }
}

TEST(RailsText, TheLastDimensionCountsForAllFurtherOnes) {
  const Rails rails = parse_rails("shm;eth0").value();
  EXPECT_EQ(rails_of_dimension(rails, 0), rails[0]);
  EXPECT_EQ(rails_of_dimension(rails, 1), rails[1]);
  EXPECT_EQ(rails_of_dimension(rails, 7), rails[1]);
  EXPECT_EQ(rails_of_dimension({}, 3), DimensionRails{});
}

TEST(RailsText, AllDimensionsTogetherNameEachInterfaceOnce) {
  using Names = std::vector<NamedInterface>;
  EXPECT_EQ(interfaces_of_all_dimensions("shm;eth0@25g,eth1;auto").value(),
            (Names{{"eth0", 25'000'000'000}, {"eth1"}}));
  EXPECT_EQ(interfaces_of_all_dimensions("eth0;eth0").value(), Names{{"eth0"}});
  EXPECT_EQ(interfaces_of_all_dimensions("shm").value(), Names{});
  EXPECT_EQ(interfaces_of_all_dimensions("").value(), Names{});
  EXPECT_EQ(interfaces_of_all_dimensions("eth0@25g;eth1,eth0").value(), (Names{{"eth0", 25'000'000'000}, {"eth1"}}));
}

TEST(RailsText, TheShapeIsWhatAllRanksShare) {
  const auto shape = [](const char* text) { return rails_shape(parse_rails(text).value()); };
  EXPECT_EQ(shape(""), "");
  EXPECT_EQ(shape("shm;eth0,eth1"), "shm;interfaces");
  EXPECT_EQ(shape("shm;enp1s0@25g"), shape("shm;eth0,eth1"));
  EXPECT_NE(shape("tcp;eth0"), shape("shm;eth0"));
  EXPECT_NE(shape("eth0"), shape("eth0;eth0"));
}

TEST(RailsText, ARateIsReadBack) {
  for (const uint64_t rate_bps : {1'000'000ull, 1'500'000ull, 2'500'000'000ull, 25'000'000'000ull, 1'234'567ull,
                                  999'999'999'999'999ull, 1'000'000'000'000'000ull})
    EXPECT_EQ(parse_rate_bps(rate_text(rate_bps), "item").value(), rate_bps) << rate_text(rate_bps);
  EXPECT_EQ(rate_text(25'000'000'000), "25g");
  EXPECT_EQ(rate_text(2'500'000'000), "2500m");
  EXPECT_EQ(rate_text(0), "0");
}

}  // namespace
}  // namespace trestle
