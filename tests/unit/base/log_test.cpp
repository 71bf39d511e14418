// The log: which messages are written and when. A message that is off does not evaluate its arguments.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "base/host.h"
#include "base/log.h"

namespace trestle {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    pattern_ = testing::TempDir() + "trestle_log_%p_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ = pattern_;
    path_.replace(path_.find("%p"), 2, std::to_string(getpid()));
  }
  void TearDown() override {
    ASSERT_TRUE(configure_log({LogLevel::kNone, 0, ""}).ok());
    std::remove(path_.c_str());
  }
  void configure(LogLevel level, uint32_t subsystems) {
    ASSERT_TRUE(configure_log({level, subsystems, pattern_}).ok());
  }
  std::string text() const {
    std::ifstream file(path_);
    std::ostringstream contents;
    contents << file.rdbuf();
    return contents.str();
  }
  std::string pattern_;
  std::string path_;
};

TEST_F(LogTest, LineHasTimeHostProcessRankAndLevel) {
  configure(LogLevel::kInfo, kAllSubsystems);
  const std::string time = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z ";
  const std::string where = host_name() + ":" + std::to_string(getpid()) + ":[0-9]+";
  LOG(kInfo, kNet, "peer %d of %s", 3, "job");
  EXPECT_TRUE(std::regex_match(text(), std::regex(time + where + " TRESTLE INFO peer 3 of job\n"))) << text();
  set_log_rank(5);
  std::thread([] { LOG(kWarn, kNet, "late"); }).join();
  EXPECT_TRUE(text().ends_with(" [5] TRESTLE WARN late\n")) << text();
  set_log_rank(5);
  set_log_rank(6);
  LOG(kWarn, kNet, "of a process with two ranks");
  EXPECT_FALSE(std::regex_search(text(), std::regex("\\[[0-9]\\] TRESTLE WARN of a process"))) << text();
}

TEST_F(LogTest, LevelAndSubsystemFilter) {
  configure(LogLevel::kInfo, static_cast<uint32_t>(Subsystem::kInit));
  int evaluated = 0;
  LOG(kInfo, kNet, "%d", ++evaluated);
  LOG(kTrace, kInit, "%d", ++evaluated);
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(text(), "");
  LOG(kInfo, kInit, "%d", ++evaluated);
  LOG(kWarn, kNet, "%d", ++evaluated);  // warnings ignore the subsystem
  EXPECT_EQ(evaluated, 2);
}

TEST_F(LogTest, LongMessagesAreCutAndErrnoSurvives) {
  configure(LogLevel::kWarn, 0);
  const std::string longer(5000, 'x');
  errno = ENOENT;
  LOG(kWarn, kInit, "%s", longer.c_str());
  EXPECT_EQ(errno, ENOENT);
  EXPECT_LE(text().size(), 2048u);
  EXPECT_EQ(text().back(), '\n');
}

TEST(Log, SubsystemGrammar) {
  const auto bit = [](Subsystem s) { return static_cast<uint32_t>(s); };
  EXPECT_EQ(parse_subsystems("INIT,NET").value(), bit(Subsystem::kInit) | bit(Subsystem::kNet));
  EXPECT_EQ(parse_subsystems("all").value(), kAllSubsystems);
  EXPECT_EQ(parse_subsystems("^NET,P2P").value(), kAllSubsystems & ~(bit(Subsystem::kNet) | bit(Subsystem::kP2p)));
  EXPECT_EQ(parse_subsystems("TOPOLOGY").value(), bit(Subsystem::kGraph));
  EXPECT_EQ(parse_subsystems("").value(), 0u);
  EXPECT_FALSE(parse_subsystems("INIT,FOO").ok());
  EXPECT_EQ(parse_log_level("trace").value(), LogLevel::kTrace);
  EXPECT_FALSE(parse_log_level("LOUD").ok());
}

TEST(Log, FileThatCannotBeOpenedIsAnError) {
  const Status status = configure_log({LogLevel::kInfo, kAllSubsystems, "/nonexistent/folder/log"});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kSystemError);
}

TEST(Log, OncePerKeyIsBounded) {
  OncePerKey once(2);
  EXPECT_TRUE(once.first("a"));
  EXPECT_FALSE(once.first("a"));
  EXPECT_TRUE(once.first("b"));
  EXPECT_FALSE(once.first("c"));
}

}  // namespace
}  // namespace trestle
