// The table of environment variables: every row parses, errors name the mistake, the documentation is up to date.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/config/config.h"
#include "base/config/config_table.h"

namespace trestle {
namespace {

TEST(Config, DefaultsParse) {
  const Result<Config> config = parse_config({});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config.value().debug_level, LogLevel::kWarn);
  EXPECT_EQ(config.value().timeout_ns, 600'000'000'000);
  EXPECT_EQ(config.value().staging_bytes, 64 << 20);
  EXPECT_EQ(config.value().spin_us, -1);
  EXPECT_EQ(config.value().transports, (std::vector<std::string>{"auto"}));
  EXPECT_TRUE(config.value().express);
  EXPECT_TRUE(config.value().warnings.empty());
}

TEST(Config, ReadsValues) {
  const Result<Config> config = parse_config({{"TRESTLE_DIMS", "4x2"},
                                              {"TRESTLE_TRANSPORT", "shm,tcp"},
                                              {"TRESTLE_TIMEOUT", "30s"},
                                              {"TRESTLE_SEGMENT", "256K"},
                                              {"TRESTLE_EXPRESS", "off"},
                                              {"TRESTLE_SPIN", "100"},
                                              {"TRESTLE_PORT_RANGE", "5000-5010"},
                                              {"TRESTLE_DEBUG", "info"},
                                              {"TRESTLE_DEBUG_SUBSYS", "^INIT"}});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config.value().dimensions, (std::vector<uint32_t>{4, 2}));
  EXPECT_EQ(config.value().transports, (std::vector<std::string>{"shm", "tcp"}));
  EXPECT_EQ(config.value().timeout_ns, 30'000'000'000);
  EXPECT_EQ(config.value().segment_bytes, 256 << 10);
  EXPECT_FALSE(config.value().express);
  EXPECT_EQ(config.value().spin_us, 100);
  EXPECT_EQ(config.value().port_range, (PortRange{5000, 5010}));
  EXPECT_EQ(config.value().debug_level, LogLevel::kInfo);
  EXPECT_EQ(config.value().debug_subsystems, kAllSubsystems & ~static_cast<uint32_t>(Subsystem::kInit));
}

TEST(Config, ErrorsNameVariableValueAndRange) {
  const Environment wrong = {{"TRESTLE_DEBUG", "LOUD"},     {"TRESTLE_DEBUG_SUBSYS", "EVERYTHING"},
                             {"TRESTLE_DIMS", "4by2"},      {"TRESTLE_TRANSPORT", "shm,pigeon"},
                             {"TRESTLE_SCHED", "magic"},    {"TRESTLE_CHUNKS", "-1"},
                             {"TRESTLE_SEGMENT", "lots"},   {"TRESTLE_CHECK_PLANS", "maybe"},
                             {"TRESTLE_TIMEOUT", "0"},      {"TRESTLE_HEARTBEAT", "1d"},
                             {"TRESTLE_PORT_RANGE", "9-1"}, {"TRESTLE_EXPRESS_BYTES", "1M"},
                             {"TRESTLE_SPIN", "fast"},      {"TRESTLE_SOCKET_FAMILY", "AF_IPX"}};
  for (const auto& [name, value] : wrong) {
    const Result<Config> config = parse_config({{name, value}});
    ASSERT_FALSE(config.ok()) << name;
    EXPECT_EQ(config.error().code, Code::kInvalidArgument);
    EXPECT_NE(config.error().message.find(name + "=" + value + ": must be "), std::string::npos)
        << config.error().message;
  }
  EXPECT_NE(parse_config({{"TRESTLE_CHUNKS", "5000"}}).error().message.find("0 to 1024"), std::string::npos);
}

TEST(Config, UnknownNamesGetTheNearestMatch) {
  const Result<Config> config = parse_config({{"TRESTLE_TIMEOUTS", "5s"}, {"TRESTLE_ALOG", "ring"}, {"OTHER", "1"}});
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config.value().warnings.size(), 2u);
  EXPECT_NE(config.value().warnings[0].find("did you mean TRESTLE_ALGO?"), std::string::npos);
  EXPECT_NE(config.value().warnings[1].find("did you mean TRESTLE_TIMEOUT?"), std::string::npos);
}

TEST(Config, EmptyCountsAsNotSet) {
  const Result<Config> config = parse_config({{"TRESTLE_CHUNKS", ""}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().values, parse_config({}).value().values);
}

TEST(Config, SecretIsNeverShown) {
  const Config config = parse_config({{"TRESTLE_SECRET", "hunter2"}}).value();
  EXPECT_EQ(config.secret, "hunter2");
  EXPECT_EQ(config_text(shown_variables(config)).find("hunter2"), std::string::npos);
  EXPECT_NE(config_text(shown_variables(config)).find("(set)"), std::string::npos);
}

TEST(Config, RanksAgreeOnExactlyTheAgreedRows) {
  const auto agreed = [](const Environment& environment) {
    std::string text;
    for (const Config::Value& value : agreed_values(parse_config(environment).value())) {
      EXPECT_TRUE(value.agreed);
      text += std::string(value.name) + "=" + value.text + "\n";
    }
    return text;
  };
  const std::string usual = agreed({});
  EXPECT_NE(agreed({{"TRESTLE_CHUNKS", "4"}}), usual);
  EXPECT_EQ(agreed({{"TRESTLE_DEBUG", "INFO"}}), usual);
  EXPECT_EQ(agreed({{"TRESTLE_SECRET", "x"}}), usual);
  // Two texts of the same value are equal.
  EXPECT_EQ(agreed({{"TRESTLE_STAGING", "65536K"}, {"TRESTLE_EXPRESS", "yes"}}), usual);
}

TEST(Config, RowsAreWellFormed) {
  std::set<std::string> names;
  for (const Variable& row : kVariables) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(std::string(row.name).rfind("TRESTLE_", 0), 0u);
    EXPECT_STRNE(row.help, "");
    EXPECT_LE(std::string(row.help).size(), 100U) << row.name << ": the rest belongs to `more`";
    EXPECT_FALSE(allowed_values(row).empty());
    EXPECT_LE(row.low, row.high) << row.name;
  }
}

TEST(Config, DocumentationIsFresh) {
  std::ifstream file(std::string(TRESTLE_SOURCE_DIR) + "/docs/environment.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), config_markdown())
      << "docs/environment.md is stale: trestle env --markdown > docs/environment.md";
}

TEST(Config, ProcessEnvironmentIsRead) {
  const Environment environment = process_environment();
  EXPECT_TRUE(environment.contains("PATH"));
}

}  // namespace
}  // namespace trestle
