// Sources of values besides the environment: configuration files and NCCL's variables.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/config/config.h"
#include "base/config/config_fields.h"
#include "base/config/config_nccl.h"
#include "base/config/config_table.h"
#include "local/temporary_folder.h"

namespace trestle {
namespace {

const Config::Value& value_of(const Config& config, std::string_view name) {
  return *std::ranges::find(config.values, name, &Config::Value::name);
}

FileValues file_of(std::string_view text) {
  return parse_config_file(text, "f").value();
}

std::string error_of(std::string_view text) {
  const Result<FileValues> values = parse_config_file(text, "x.conf");
  if (values.ok()) return "";
  EXPECT_EQ(values.error().code, Code::kInvalidArgument);
  return values.error().message;
}

TEST(ConfigFile, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(file_of("\xEF\xBB\xBFTRESTLE_CHUNKS=4").at("TRESTLE_CHUNKS").text, "4");
}

TEST(ConfigFile, HasNamesValuesAndComments) {
  const FileValues values = file_of(
      "# all of it\n"
      "TRESTLE_CHUNKS = 4  # four\r\n"
      "\n"
      "  TRESTLE_ALGO=ring#1\n"
      "TRESTLE_SCHED=\n"
      "TRESTLE_STORE=file:/a=b");
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values.at("TRESTLE_CHUNKS").text, "4");
  EXPECT_EQ(values.at("TRESTLE_CHUNKS").place, "f:2");
  EXPECT_EQ(values.at("TRESTLE_ALGO").text, "ring#1");
  EXPECT_EQ(values.at("TRESTLE_SCHED").text, "");
  EXPECT_EQ(values.at("TRESTLE_STORE").text, "file:/a=b");
}

TEST(ConfigFile, ErrorsNameFileLineAndNearestMatch) {
  EXPECT_EQ(error_of("\n# c\nTRESTLE_CHNUKS=4\n"),
            "x.conf:3: there is no variable TRESTLE_CHNUKS; did you mean TRESTLE_CHUNKS?");
  EXPECT_EQ(error_of("NOTHING_LIKE_IT_AT_ALL=4"), "x.conf:1: there is no variable NOTHING_LIKE_IT_AT_ALL");
  EXPECT_EQ(error_of("TRESTLE_CHUNKS"), "x.conf:1: this line is not NAME=value");
  EXPECT_EQ(error_of("=4"), "x.conf:1: this line is not NAME=value");
  EXPECT_EQ(error_of("TRESTLE_CHUNKS=1\nTRESTLE_CHUNKS=2"), "x.conf:2: TRESTLE_CHUNKS is set already at x.conf:1");
  EXPECT_EQ(error_of("TRESTLE_CONF_FILE=y"), "x.conf:1: TRESTLE_CONF_FILE cannot be set in a file");
  const Result<Config> config = parse_config({}, file_of("\nTRESTLE_CHUNKS=many"));
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().message.find("f:2: TRESTLE_CHUNKS=many: must be integer from 0"), std::string::npos)
      << config.error().message;
  const Result<Config> secret = parse_config({}, file_of("TRESTLE_SECRET=hunter2"));
  EXPECT_EQ(secret.value().secret, "hunter2");
  EXPECT_EQ(config_text(shown_variables(secret.value())).find("hunter2"), std::string::npos);
}

TEST(ConfigFile, StandsBetweenEnvironmentAndFallback) {
  const FileValues file = file_of("TRESTLE_CHUNKS=4\nTRESTLE_DEBUG=INFO\nTRESTLE_SCHED=");
  const Config config =
      parse_config({{"TRESTLE_CHUNKS", "8"}, {"NCCL_DEBUG", "TRACE"}, {"NCCL_SOCKET_IFNAME", "eth"}}, file).value();
  EXPECT_EQ(config.chunks, 8);
  EXPECT_EQ(config.debug_level, LogLevel::kInfo);
  EXPECT_EQ(config.socket_interfaces, "eth");
  EXPECT_EQ(config.schedule, "auto");
  EXPECT_EQ(value_of(config, "TRESTLE_CHUNKS").source, ConfigSource::kEnvironment);
  EXPECT_EQ(value_of(config, "TRESTLE_DEBUG").source, ConfigSource::kFile);
  EXPECT_EQ(value_of(config, "TRESTLE_SOCKET_IFNAME").source, ConfigSource::kNccl);
  EXPECT_EQ(value_of(config, "TRESTLE_SCHED").source, ConfigSource::kDefault);
  const std::string text = config_text(shown_variables(config));
  for (const char* part : {"[environment]", "[f:2]", "[NCCL_SOCKET_IFNAME]", "[default]"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(ConfigFile, IsTheNamedOneOrTheUsersAboveTheSystems) {
  const TemporaryFolder folder;
  const std::string system = folder.write("system", "TRESTLE_CHUNKS=1\nTRESTLE_INTRA=fifo\n");
  const std::string named = folder.write("named", "TRESTLE_CHUNKS=3\n");
  folder.write(".trestle.conf", "TRESTLE_CHUNKS=2\n");
  const auto chunks = [&](const Environment& environment) {
    return read_config_files(environment, system.c_str()).value().at("TRESTLE_CHUNKS").text;
  };
  EXPECT_EQ(chunks({}), "1");
  EXPECT_EQ(chunks({{"HOME", "/nonexistent"}}), "1");
  EXPECT_EQ(chunks({{"HOME", folder.path()}}), "2");
  EXPECT_EQ(chunks({{"HOME", folder.path()}, {"TRESTLE_CONF_FILE", named}}), "3");
  const FileValues all = read_config_files({{"TRESTLE_CONF_FILE", named}}, system.c_str()).value();
  EXPECT_EQ(all.at("TRESTLE_INTRA").text, "fifo");
  EXPECT_EQ(all.at("TRESTLE_INTRA").place, system + ":2");
  EXPECT_TRUE(read_config_files({}, "/nonexistent/x").value().empty());
  const Result<FileValues> absent = read_config_files({{"TRESTLE_CONF_FILE", "/nonexistent/y"}}, "/nonexistent/x");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, Code::kSystemError);
  EXPECT_NE(absent.error().message.find("'/nonexistent/y' cannot be read"), std::string::npos);
  EXPECT_FALSE(read_config_files({{"TRESTLE_CONF_FILE", folder.path()}}, "/nonexistent/x").ok());  // a folder
}

struct Translated {
  std::string text;
  size_t warnings;
};

Translated translate(const char* nccl, const char* value) {
  const std::vector<Fallback> fallbacks = nccl_fallbacks({{nccl, value}});
  return {fallbacks.at(0).text, fallbacks.at(0).warnings.size()};
}

TEST(ConfigNccl, AlgorithmsHaveOurNames) {
  const struct {
    const char *nccl, *ours;
    size_t warnings;
  } kCases[] = {
      {"Ring", "allgather:ring;allreduce:ring;broadcast:ring;reduce:ring;reducescatter:ring", 0},
      {"tree", "allreduce:dbtree", 0},
      {"^Tree", "allreduce:^dbtree,tree", 0},
      {"^ring", "allgather:^ring;allreduce:^ring;broadcast:^ring;reduce:^ring;reducescatter:^ring", 0},
      {"^nvls", "", 0},
      {"^tree,ring", "allgather:^ring;allreduce:^dbtree,tree,ring;broadcast:^ring;reduce:^ring;reducescatter:^ring", 0},
      {"allreduce:tree,nvls;broadcast:ring", "allreduce:dbtree;broadcast:ring", 1},
      {"allreduce:tree;ring", "allgather:ring;allreduce:dbtree;broadcast:ring;reduce:ring;reducescatter:ring", 0},
      {"ring;allreduce:tree", "allgather:ring;allreduce:dbtree;broadcast:ring;reduce:ring;reducescatter:ring", 0},
      {"broadcast:tree", "broadcast:dbtree", 0},
      {"allgather:tree", "", 1},
      {"allreduce:ring,tree", "", 1},
      {"CollnetDirect", "", 1},
      {"magic", "", 1},
      {"alltoall:ring", "", 1},
      {"allreduce:ring,magic", "allreduce:ring", 1},
  };
  for (const auto& c : kCases) {
    const Translated translated = translate("NCCL_ALGO", c.nccl);
    EXPECT_EQ(translated.text, c.ours) << c.nccl;
    EXPECT_EQ(translated.warnings, c.warnings) << c.nccl;
  }
}

TEST(ConfigNccl, OthersAreAsTheyAre) {
  EXPECT_EQ(translate("NCCL_SOCKET_IFNAME", "^=docker0,lo").text, "^=docker0,lo");
  EXPECT_EQ(translate("NCCL_DEBUG", "info").text, "info");
  EXPECT_EQ(translate("NCCL_DEBUG", "LOUD").warnings, 1u);
  EXPECT_EQ(translate("NCCL_DEBUG_FILE", "/tmp/log.%h.%p").text, "/tmp/log.%h.%p");
  EXPECT_EQ(translate("NCCL_DEBUG_SUBSYS", "INIT,PROXY,net").text, "INIT,net");
  EXPECT_EQ(translate("NCCL_DEBUG_SUBSYS", "^NVLS").text, "ALL");
  EXPECT_EQ(translate("NCCL_DEBUG_SUBSYS", "^COLL,RAS").text, "^COLL");
  EXPECT_EQ(translate("NCCL_DEBUG_SUBSYS", "INIT,ODD").warnings, 1u);
  EXPECT_EQ(translate("NCCL_P2P_DISABLE", "1").text, "0");
  EXPECT_EQ(translate("NCCL_P2P_DISABLE", "0").text, "1");
  EXPECT_EQ(translate("NCCL_P2P_DISABLE", "yes").warnings, 1u);
  EXPECT_TRUE(nccl_fallbacks({{"NCCL_ALGO", ""}, {"NCCL_IB_HCA", "mlx5"}}).empty());
}

TEST(ConfigNccl, HoldsOnlyWhereOursIsNotSet) {
  const Config fallback = parse_config({{"NCCL_ALGO", "allreduce:ring,magic"}, {"NCCL_DEBUG", "LOUD"}}).value();
  EXPECT_EQ(fallback.algorithm, "allreduce:ring");
  EXPECT_EQ(value_of(fallback, "TRESTLE_ALGO").place, "NCCL_ALGO");
  EXPECT_EQ(fallback.debug_level, LogLevel::kWarn);
  EXPECT_EQ(fallback.warnings.size(), 2u);
  const Config ours = parse_config({{"NCCL_ALGO", "magic"}, {"TRESTLE_ALGO", "hd"}}).value();
  EXPECT_EQ(ours.algorithm, "hd");
  EXPECT_TRUE(ours.warnings.empty());
}

TEST(ConfigNccl, NamesAreVariablesOfOurs) {
  for (const Fallback& fallback : nccl_fallbacks({{"NCCL_SOCKET_IFNAME", "a"},
                                                  {"NCCL_ALGO", "ring"},
                                                  {"NCCL_DEBUG", "INFO"},
                                                  {"NCCL_DEBUG_SUBSYS", "INIT"},
                                                  {"NCCL_DEBUG_FILE", "f"},
                                                  {"NCCL_P2P_DISABLE", "1"}})) {
    EXPECT_NE(find_variable(fallback.variable), nullptr) << fallback.variable;
    EXPECT_EQ(nccl_name_of(fallback.variable), fallback.nccl);
  }
}

TEST(ConfigStruct, HasAFieldForEveryVariableOfACommunicator) {
  const std::vector<std::string_view> of_the_process = {"TRESTLE_CONF_FILE",       "TRESTLE_DEBUG",
                                                        "TRESTLE_DEBUG_SUBSYS",    "TRESTLE_DEBUG_FILE",
                                                        "TRESTLE_PROGRESS_THREAD", "TRESTLE_PROGRESS_THREADS"};
  for (const Variable& row : kVariables) {
    const bool process = std::ranges::find(of_the_process, row.name) != of_the_process.end();
    EXPECT_EQ(field_of(row.name).empty(), process)
        << row.name << ": append a field to trestleConfig_t, a row to config_fields.h and one to api_config.cpp";
  }
  for (const ConfigField& row : kConfigFields) EXPECT_NE(find_variable(row.variable), nullptr) << row.variable;
}

TEST(ConfigStruct, HoldsAgainstEverythingElse) {
  Config config = parse_config({{"TRESTLE_STAGING", "1M"}}).value();
  ASSERT_TRUE(override_value(config, "TRESTLE_STAGING", "65536K").ok());
  ASSERT_TRUE(override_value(config, "TRESTLE_SECRET", "hunter2").ok());
  EXPECT_EQ(config.staging_bytes, 64 << 20);
  EXPECT_EQ(value_of(config, "TRESTLE_STAGING").source, ConfigSource::kStruct);
  EXPECT_EQ(config_text(shown_variables(config)).find("hunter2"), std::string::npos);
  EXPECT_NE(config_text(shown_variables(config)).find("[config struct]"), std::string::npos);
  const Status refused = override_value(config, "TRESTLE_STAGING", "1");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message.rfind("config.stagingBytes: TRESTLE_STAGING=1: must be bytes from", 0), 0u);
}

}  // namespace
}  // namespace trestle
