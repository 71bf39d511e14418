// The lines of a real job's log with TRESTLE_DEBUG and TRESTLE_DEBUG_SUBSYS: the version, and for each subsystem lines
// if it is on and none if it is off.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <vector>

#include "local/temporary_folder.h"
#include "support/ranks.h"
#include "trestle/log.h"

namespace {

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (ranks::contains(line, part)) lines.push_back(line);
  }
  return lines;
}

const ranks::Settings kSettings{.dims = "2", .transport = "shm", .name = "lines"};

// Causes every kind of log line once, with small and large data.
void work(ranks::Process& process) {
  trestleComm_t comm = nullptr;
  ASSERT_TRUE(ranks::succeeded(ranks::join(process, kSettings, &comm)));
  const size_t most = size_t{1} << 18;
  std::vector<float> send(most, 1.0F);
  std::vector<float> recv(most);
  for (const size_t count : {size_t{2}, most}) {
    EXPECT_TRUE(ranks::succeeded(
        trestleAllReduce(send.data(), recv.data(), count, trestleFloat32, trestleSum, comm, nullptr), comm));
    EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(recv[count - 1], 2.0F);
  }
  const int peer = 1 - process.rank;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(trestleGroupStart(), trestleSuccess);
    EXPECT_TRUE(ranks::succeeded(trestleSend(send.data(), 7, trestleFloat32, peer, comm, nullptr), comm));
    EXPECT_TRUE(ranks::succeeded(trestleRecv(recv.data(), 7, trestleFloat32, peer, comm, nullptr), comm));
    EXPECT_TRUE(ranks::succeeded(trestleGroupEnd(), comm));
  }
  trestleStream_t stream = nullptr;
  EXPECT_EQ(trestleStreamCreate(&stream), trestleSuccess);
  EXPECT_TRUE(ranks::succeeded(trestleBroadcast(send.data(), recv.data(), 3, trestleInt32, 1, comm, stream), comm));
  EXPECT_TRUE(ranks::succeeded(trestleStreamSynchronize(stream), comm));
  EXPECT_EQ(trestleStreamDestroy(stream), trestleSuccess);
  trestleRequest_t request = nullptr;
  EXPECT_TRUE(ranks::succeeded(
      trestleAllReduceStart(send.data(), recv.data(), 5, trestleFloat32, trestleMax, comm, nullptr, &request), comm));
  EXPECT_TRUE(ranks::succeeded(trestleAllReduceFinish(request, nullptr), comm));
  EXPECT_TRUE(ranks::succeeded(trestleRequestWait(request), comm));
  EXPECT_EQ(trestleRequestFree(request), trestleSuccess);
  EXPECT_TRUE(ranks::succeeded(trestleAllGather(nullptr, nullptr, 0, trestleInt8, comm, nullptr), comm));
  EXPECT_TRUE(ranks::succeeded(trestleBarrier(comm, nullptr), comm));
  EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
}

// The log of every rank.
std::vector<std::string> logs(ranks::Env env, const std::function<void(ranks::Process&)>& body = work) {
  const TemporaryFolder folder;
  ranks::Job job;
  job.ranks = kSettings.ranks;
  job.env = [&](int rank) {
    ranks::Env with = env;
    with["TRESTLE_DEBUG_FILE"] = folder.path(std::to_string(rank));
    return with;
  };
  job.body = body;
  ranks::expect_ended_well(ranks::run(job));
  std::vector<std::string> texts;
  for (int r = 0; r < job.ranks; ++r) texts.push_back(folder.content(std::to_string(r)));
  return texts;
}

std::vector<std::string> logs_of(const std::string& subsystems) {
  return logs({{"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_SUBSYS", subsystems}});
}

TEST(VersionLine, IsOnceAtRankZeroFromLevelVersionOn) {
  for (const char* level : {"VERSION", "WARN", "INFO"}) {
    const std::vector<std::string> texts = logs({{"TRESTLE_DEBUG", level}, {"TRESTLE_DEBUG_SUBSYS", "TUNING"}});
    const auto lines = lines_with(texts[0], " TRESTLE VERSION Trestle ");
    ASSERT_EQ(lines.size(), 1u) << level << ": " << texts[0];
    EXPECT_TRUE(ranks::contains(lines[0], "Trestle " + std::to_string(TRESTLE_MAJOR) + "." +
                                              std::to_string(TRESTLE_MINOR) + "." + std::to_string(TRESTLE_PATCH)));
    EXPECT_TRUE(ranks::contains(lines[0], "transports loopback, shm, tcp")) << lines[0];
    EXPECT_EQ(lines_with(texts[1], "VERSION").size(), 0u) << level;
  }
  EXPECT_EQ(lines_with(logs({{"TRESTLE_DEBUG", "VERSION"}})[0], "").size(), 1u);
  for (const ranks::Env& env : {ranks::Env{}, ranks::Env{{"TRESTLE_DEBUG", "NONE"}}}) {
    EXPECT_EQ(logs(env), std::vector<std::string>(2));
  }
}

// Two communicators whose ranks are all in this process.
TEST(VersionLine, IsOnceInAProcess) {
  const TemporaryFolder folder;
  ranks::isolated(
      [] {
        for (int i = 0; i < 2; ++i) ranks::run_threads({.ranks = 2}, [](int, trestleComm_t) {});
      },
      {{"NCCL_DEBUG", "VERSION"}, {"TRESTLE_DEBUG_FILE", folder.path("log")}});
  const std::string text = folder.content("log");
  EXPECT_EQ(lines_with(text, "VERSION Trestle ").size(), 1u) << text;
}

// One line per call, in the order of the calls, on the board and in phases.
TEST(LogSubsystem, CallHasEveryCallWithItsNumber) {
  const std::vector<std::string> texts = logs_of("CALL");
  for (int rank = 0; rank < kSettings.ranks; ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    const std::string who = ": communicator lines rank " + std::to_string(rank) + " of 2 ";
    const std::string peer = std::to_string(1 - rank);
    const std::vector<std::string> expected = {
        "AllReduce" + who + "operation 0 count 2 type float op sum send 0x",
        "AllReduce" + who + "operation 1 count 262144 type float op sum send 0x",
        "Send" + who + "message 0 count 7 type float peer " + peer + " send 0x",
        "Recv" + who + "message 0 count 7 type float peer " + peer + " recv 0x",
        "Send" + who + "message 1 count 7 type float peer " + peer + " send 0x",
        "Recv" + who + "message 1 count 7 type float peer " + peer + " recv 0x",
        "Broadcast" + who + "operation 2 count 3 type int32 root 1 send 0x",
        "AllReduceStart" + who + "operation 3 count 5 type float op max send 0x",
        "AllReduceFinish" + who + "operation 4 count 5 type float send 0x",
        "AllGather" + who + "nothing to move count 0 type int8 send ",
        "Barrier" + who + "operation 5 stream own",
    };
    const auto lines = lines_with(text, " TRESTLE INFO ");
    ASSERT_EQ(lines.size(), expected.size()) << text;
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_TRUE(ranks::contains(lines[i], " TRESTLE INFO " + expected[i])) << lines[i] << "\n" << expected[i];
      EXPECT_EQ(ranks::contains(lines[i], "stream own"), i != 6) << lines[i];
    }
  }
  EXPECT_EQ(lines_with(logs_of("^CALL")[0], ": communicator lines rank").size(), 0u);
}

TEST(LogSubsystem, GraphHasTheDimensionsAndEveryRanksPlace) {
  const std::vector<std::string> texts = logs_of("GRAPH");
  EXPECT_EQ(lines_with(texts[0], "INFO 2 ranks; why: dimensions 2 as configured").size(), 1u) << texts[0];
  EXPECT_EQ(lines_with(texts[1], "; why: ").size(), 0u) << texts[1];
  for (int rank = 0; rank < kSettings.ranks; ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    const std::string place = ": dimension 1: place " + std::to_string(rank) + " among ranks 0 1; selection assumes ";
    EXPECT_EQ(lines_with(text, place).size(), 1u) << text;
    EXPECT_EQ(lines_with(text, "small collectives use a board").size(), 1u) << text;
  }
  const std::vector<std::string> others = logs_of("^GRAPH,INIT");
  EXPECT_EQ(lines_with(others[0], "; why: ").size(), 0u);
  EXPECT_EQ(lines_with(others[0], "dimension 1: place").size(), 0u);
}

TEST(LogSubsystem, TuningHasTheScheduleOfEveryKindOfCall) {
  const std::string text = logs_of("TUNING")[0];
  EXPECT_EQ(lines_with(text, "INFO allreduce of 262144 float (sum): policy auto, predicted ").size(), 1u) << text;
  EXPECT_EQ(lines_with(text, "INFO 1048576 bytes in ").size(), 1u) << text;
  EXPECT_EQ(lines_with(logs_of("^TUNING")[0], ": policy auto, predicted ").size(), 0u);
}

// An all-gather-v of as much data in blocks of other lengths.
void gather_blocks(ranks::Process& process) {
  trestleComm_t comm = nullptr;
  ASSERT_TRUE(ranks::succeeded(ranks::join(process, kSettings, &comm)));
  const std::vector<int8_t> send(3000, 1);
  std::vector<int8_t> recv(4000);
  const size_t starts[][2] = {{0, 2000}, {0, 3000}};
  const size_t counts[][2] = {{2000, 2000}, {3000, 1000}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(ranks::succeeded(trestleAllGatherV(send.data(), counts[i][process.rank], recv.data(), counts[i],
                                                   starts[i], trestleInt8, comm, nullptr),
                                 comm));
    EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  }
  EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
}

double predicted_us(const std::string& text, const std::string& call) {
  const std::vector<std::string> lines = lines_with(text, "INFO " + call + ": policy auto, predicted ");
  EXPECT_EQ(lines.size(), 1u) << call << " in " << text;
  if (lines.empty()) return 0;
  return std::stod(lines[0].substr(lines[0].find("predicted ") + 10));
}

TEST(LogSubsystem, TuningPredictsTheLengthsOfTheBlocks) {
  const std::string text = logs({{"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_SUBSYS", "TUNING"}}, gather_blocks)[0];
  const double alike_us = predicted_us(text, "allgatherv counts 2000 2000 of int8");
  EXPECT_GT(predicted_us(text, "allgatherv counts 3000 1000 of int8"), alike_us);
}

TEST(LogSubsystem, P2pHasTheFirstMessageOfEachDirection) {
  const std::vector<std::string> texts = logs_of("P2P");
  for (int rank = 0; rank < kSettings.ranks; ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    const std::string peer = "rank " + std::to_string(1 - rank) + " ";
    EXPECT_EQ(lines_with(text, " TRESTLE INFO ").size(), 2u) << text;
    for (const std::string& direction : {": first message to " + peer, ": first message from " + peer}) {
      const auto lines = lines_with(text, direction);
      ASSERT_EQ(lines.size(), 1u) << text;
      EXPECT_TRUE(ranks::contains(lines[0], " goes over shm, ")) << lines[0];
    }
  }
  EXPECT_EQ(lines_with(logs_of("^P2P")[0], "first message").size(), 0u);
}

TEST(LogSubsystem, ShmHasWhatIsOpenedToAPeer) {
  const std::vector<std::string> texts = logs_of("SHM");
  for (int rank = 0; rank < kSettings.ranks; ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    const std::string peer = "rank " + std::to_string(1 - rank) + " ";
    const auto opened = lines_with(text, "shm: rank " + std::to_string(rank) + " opens a lane of ");
    ASSERT_EQ(opened.size(), 1u) << text;
    EXPECT_TRUE(ranks::contains(opened[0], " bytes to " + peer)) << opened[0];
    EXPECT_EQ(lines_with(text, "shm: mapped the lane of ").size(), 1u) << text;
    EXPECT_EQ(lines_with(text, "shm: opens a data segment of ").size(), 1u) << text;
    EXPECT_EQ(lines_with(text, " the board of small collectives, ").size(), 1u) << text;
  }
  EXPECT_EQ(lines_with(logs_of("^SHM")[0], "shm: ").size(), 0u);
}

void write_lines(ranks::Process&) {
  EXPECT_EQ(trestleLog(trestleLogWarn, "a warning of a binding"), trestleSuccess);
  EXPECT_EQ(trestleLog(trestleLogInfo, "a remark of a binding"), trestleSuccess);
  EXPECT_TRUE(ranks::refused(trestleLog(trestleLogWarn, nullptr), trestleInvalidArgument, {"text is NULL"}));
  EXPECT_TRUE(
      ranks::refused(trestleLog(static_cast<trestleLogLevel_t>(9), ""), trestleInvalidArgument, {"level is 9"}));
}

TEST(LogOfBindings, HasTheLibrarysLevels) {
  for (const bool info : {false, true}) {
    const std::string text = logs({{"TRESTLE_DEBUG", info ? "INFO" : "WARN"}}, write_lines)[0];
    EXPECT_EQ(lines_with(text, " TRESTLE WARN a warning of a binding").size(), 1u) << text;
    EXPECT_EQ(lines_with(text, " TRESTLE INFO a remark of a binding").size(), info ? 1u : 0u) << text;
  }
}

// Ranks that connect to each other at the same time give up connections, which is nothing to tell anybody.
TEST(LogLines, AHealthyRunTellsOfNoLostConnection) {
  const TemporaryFolder folder;
  const ranks::Settings settings{.ranks = 6, .transport = "tcp"};
  const auto body = [&](ranks::Process&, trestleComm_t comm) {
    std::vector<float> send(6, 1.0F), recv(6);
    EXPECT_TRUE(ranks::succeeded(trestleAllToAll(send.data(), recv.data(), 1, trestleFloat32, comm, nullptr), comm));
    EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  };
  ranks::on_processes(settings, body, [&](int) {
    return ranks::Env{
        {"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_SUBSYS", "ALL"}, {"TRESTLE_DEBUG_FILE", folder.path("log")}};
  });
  const std::string log = folder.content("log");
  EXPECT_FALSE(lines_with(log, " INFO ").empty());
  for (const char* told : {"before its handshake", " WARN "}) {
    for (const std::string& line : lines_with(log, told)) ADD_FAILURE() << line;
  }
}

}  // namespace
