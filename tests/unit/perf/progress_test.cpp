// The perf binaries' progress line, on a separate terminal and with a clock that only the test advances.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "perf/report/progress.h"

namespace trestle::perf {
namespace {

constexpr const char* kErase = "\r\033[K";

Progress::Clock::time_point fake_time;
Progress::Clock::time_point fake_now() {
  return fake_time;
}

class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    const char* name = ptsname(master_);
    const int slave = name != nullptr ? open(name, O_RDWR | O_NOCTTY) : -1;
    if (slave >= 0) file_ = fdopen(slave, "w");
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (file_ != nullptr) std::fclose(file_);
    if (master_ >= 0) close(master_);
  }

  std::FILE* file() const { return file_; }
  // All output since the last call. A mark after it shows its end.
  std::string screen() {
    std::fputs("|", file_);
    std::fflush(file_);
    std::string text;
    char c = 0;
    while (read(master_, &c, 1) == 1 && c != '|') text += c;
    return text;
  }

 private:
  const int master_;
  std::FILE* file_ = nullptr;
};

TEST(PerfProgress, SaysWhereItIs) {
  EXPECT_EQ(progress_text(12, 40, 65536, "in place", 83), "row 12 of 40, 65536 bytes, in place, after 83 s");
  EXPECT_EQ(progress_text(12, 0, 8, "warm-up", 3), "row 12, 8 bytes, warm-up, after 3 s");
}

TEST(PerfProgress, ShowsTheStagesOfLongRuns) {
  Terminal terminal;
  ASSERT_NE(terminal.file(), nullptr);
  {
    Progress progress(terminal.file(), 3, fake_now);
    EXPECT_TRUE(progress.shown());
    progress.begin_stage("warm-up", 8, 100);
    progress.begin_stage("out of place", 8, 100);
    progress.end_row();
    EXPECT_EQ(terminal.screen(), "") << "a short run";
    fake_time += std::chrono::seconds(5);
    progress.begin_stage("out of place", 8, 100);
    EXPECT_EQ(terminal.screen(), std::string(kErase) + "row 2 of 3, 8 bytes, out of place, after 5 s");
    progress.begin_stage("verification", 8, 0);
    EXPECT_EQ(terminal.screen(), std::string(kErase) + "row 2 of 3, 8 bytes, verification, after 5 s");
    progress.end_row();
    EXPECT_EQ(terminal.screen(), kErase);
    progress.end_row();
    EXPECT_EQ(terminal.screen(), "") << "there was nothing to take away";
    progress.begin_stage("out of place", 8, 100);
    terminal.screen();
  }
  EXPECT_EQ(terminal.screen(), kErase) << "the line is taken away at the end";
}

TEST(PerfProgress, ShowsALongStageBeforeItBegins) {
  Terminal terminal;
  ASSERT_NE(terminal.file(), nullptr);
  Progress progress(terminal.file(), 1, fake_now);
  progress.begin_stage("warm-up", size_t{8} << 30, 1);  // takes long on any machine
  EXPECT_EQ(terminal.screen(), std::string(kErase) + "row 1 of 1, 8589934592 bytes, warm-up, after 0 s");
  progress.end_row();
  terminal.screen();
  // 1000 bytes took 0.1 s, so 20 times as many take 2 s.
  progress.begin_stage("warm-up", 1000, 1);
  fake_time += std::chrono::milliseconds(100);
  progress.begin_stage("verification", 1000, 0);  // has no effect on the estimate
  EXPECT_EQ(terminal.screen(), "");
  fake_time += std::chrono::milliseconds(1);
  progress.begin_stage("out of place", 1000, 18);
  EXPECT_EQ(terminal.screen(), "");
  fake_time += std::chrono::milliseconds(100 * 18);
  progress.begin_stage("in place", 1000, 20);
  EXPECT_EQ(terminal.screen(), std::string(kErase) + "row 2 of 1, 1000 bytes, in place, after 1 s");
}

TEST(PerfProgress, TicksOnceASecond) {
  Terminal terminal;
  ASSERT_NE(terminal.file(), nullptr);
  Progress progress(terminal.file(), 0, fake_now);
  progress.begin_stage("out of place", 8, 10);
  for (int i = 0; i < 38; ++i) {  // tenths of seconds
    progress.tick();
    fake_time += std::chrono::milliseconds(100);
  }
  EXPECT_EQ(terminal.screen(), std::string(kErase) + "row 1, 8 bytes, out of place, after 2 s" + kErase +
                                   "row 1, 8 bytes, out of place, after 3 s");
}

TEST(PerfProgress, IsForTerminalsOnly) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* file = fdopen(ends[1], "w");
  {
    Progress progress(file, 3, fake_now), none(nullptr, 3, fake_now);
    EXPECT_FALSE(progress.shown());
    fake_time += std::chrono::seconds(5);
    for (Progress* one : {&progress, &none}) {
      one->begin_stage("out of place", 8, 100);
      one->tick();
      one->end_row();
    }
  }
  std::fclose(file);
  char c = 0;
  EXPECT_EQ(read(ends[0], &c, 1), 0);
  close(ends[0]);
}

}  // namespace
}  // namespace trestle::perf
