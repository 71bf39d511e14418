// Measured link speeds in real jobs: which rank's file counts, the effect of bad files, results that do not depend on
// numbers, and the command that measures. No time is asserted.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "base/host.h"
#include "conformance/api_call.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"
#include "topology/calibration_file.h"

namespace {

using trestle::Topology;

constexpr int kRanks = 4;
constexpr const char* kHost = "calibration-test";

std::vector<trestle::RankPlace> places() {
  std::vector<trestle::RankPlace> places;
  for (uint64_t r = 0; r < kRanks; ++r) places.push_back({trestle::host_name(), kHost, r + 1});
  return places;
}

// The topology of these tests' ranks.
Topology asked() {
  return trestle::choose_topology({"2x2", "", "shm"}, places()).value();
}

uint64_t key() {
  return trestle::calibration_key(asked(), places());
}

trestle::CalibrationOrigin origin() {
  return trestle::calibration_origin(places(), TRESTLE_VERSION_CODE);
}

Topology measured(uint64_t inner_mbps, uint64_t outer_mbps) {
  Topology topology = asked();
  topology.dimensions[0].bandwidth_mbps = inner_mbps;
  topology.dimensions[1].bandwidth_mbps = outer_mbps;
  for (auto& dimension : topology.dimensions) dimension.latency_ns = 1'000;
  return topology;
}

std::string write(const TemporaryFolder& folder, const Topology& topology,
                  const trestle::CalibrationOrigin& from = origin()) {
  const std::string path = trestle::calibration_path(folder.path(), key());
  EXPECT_TRUE(trestle::write_calibration(path, key(), from, topology).ok());
  return path;
}

ranks::Env variables(const TemporaryFolder& folder, const std::string& mode) {
  return {{"TRESTLE_CALIBRATE", mode}, {"TRESTLE_CALIBRATION_DIR", folder.path()}, {"TRESTLE_HOSTID", kHost}};
}

const ranks::Settings kSettings{.ranks = kRanks, .dims = "2x2", .transport = "shm"};

// Every rank's predicted time of an all-reduce, which shows the link speeds in use. Also runs the all-reduce.
std::vector<ranks::Outcome> predictions(const std::function<ranks::Env(int rank)>& env, bool deterministic = false) {
  ranks::Job job;
  job.ranks = kRanks;
  job.env = env;
  job.body = [deterministic](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, kSettings, &comm)));
    trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
    config.deterministic = deterministic ? 1 : 0;
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPush(&config)));
    double time_us = 0;
    EXPECT_TRUE(
        ranks::succeeded(trestlePredictTime(comm, trestleCollAllReduce, 1 << 20, trestleFloat32, &time_us), comm));
    process.result = std::to_string(time_us);
    api::run_and_verify({.count = 100'000}, process.rank, process.ranks, comm);
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  return outcomes;
}

// The prediction, which must be the same on all ranks.
std::string prediction(const std::vector<ranks::Outcome>& outcomes) {
  for (const ranks::Outcome& outcome : outcomes) EXPECT_EQ(outcome.result, outcomes[0].result);
  EXPECT_FALSE(outcomes[0].result.empty());
  return outcomes[0].result;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

size_t warnings(const std::vector<ranks::Outcome>& outcomes) {
  size_t count = 0;
  for (const ranks::Outcome& outcome : outcomes) count += count_of(outcome.output, "calibration ignored");
  return count;
}

TEST(CalibrationTest, RankZeroHasTheFileForAll) {
  const TemporaryFolder full;
  const TemporaryFolder empty;
  write(full, measured(500, 100));
  const auto with = [&](int holder) {
    return predictions([&, holder](int rank) { return variables(rank == holder ? full : empty, "cached"); });
  };
  const std::string nominal = prediction(predictions([&](int) { return variables(full, "off"); }));
  EXPECT_NE(prediction(with(0)), nominal);
  EXPECT_EQ(prediction(with(1)), nominal) << "nobody asks rank 1";
}

// The schedule that rank 0 logs at INFO, line by line, without the times, which depend on the measurement.
std::string schedule(const std::vector<ranks::Outcome>& outcomes) {
  constexpr std::string_view kMark = " INFO ";
  std::istringstream output(outcomes[0].output);
  std::string chosen;
  for (std::string line; std::getline(output, line);) {
    const size_t mark = line.find(kMark);
    if (mark != std::string::npos && line.find(", predicted ") == std::string::npos)
      chosen += line.substr(mark + kMark.size()) + "\n";
  }
  EXPECT_NE(chosen.find(" by "), std::string::npos) << outcomes[0].output;
  return chosen;
}

// A deterministic call's time is predicted with measured speeds, but its schedule follows from nominal speeds.
TEST(CalibrationTest, DeterministicCallsDoTheSameWhateverWasMeasured) {
  const TemporaryFolder folder;
  write(folder, measured(500, 100'000));
  const auto chosen = [&](const char* mode, bool deterministic) {
    const auto env = [&](int) {
      ranks::Env env = variables(folder, mode);
      env["TRESTLE_DEBUG"] = "INFO";
      env["TRESTLE_DEBUG_SUBSYS"] = "TUNING";
      return env;
    };
    return schedule(predictions(env, deterministic));
  };
  const std::string nominal = chosen("off", true);
  EXPECT_EQ(chosen("cached", true), nominal);
  EXPECT_NE(chosen("cached", false), nominal) << "where the inner links are the slow ones";
}

TEST(CalibrationTest, BadFilesAreIgnoredWithOneWarning) {
  const TemporaryFolder folder;
  const std::string nominal = prediction(predictions([&](int) { return variables(folder, "cached"); }));
  const std::string path = write(folder, measured(500, 100));
  std::string good;
  std::getline(std::ifstream(path), good, '\0');
  const std::string first = good.substr(0, good.find('{'));
  const std::vector<std::string> bad_ones = {"nonsense", good.substr(0, good.size() / 2),
                                             "trestle-calibration 2 0000000000000000\n",
                                             first + R"({"dimensions":[{"size":2,"bandwidth_gbps":NaN}]})"};
  for (const std::string& bad : bad_ones) {
    std::ofstream(path) << bad;
    const auto outcomes = predictions([&](int) { return variables(folder, "cached"); });
    EXPECT_EQ(prediction(outcomes), nominal) << bad;
    EXPECT_EQ(warnings(outcomes), 1u) << outcomes[0].output;
    EXPECT_NE(outcomes[0].output.find(path + ":"), std::string::npos) << outcomes[0].output;
  }
}

// The lines about the calibration that rank 0 logs while it makes two communicators.
std::vector<std::string> said_of_two(const TemporaryFolder& folder) {
  ranks::Job job;
  job.ranks = kRanks;
  job.env = [&](int) {
    ranks::Env env = variables(folder, "cached");
    env["TRESTLE_DEBUG"] = "INFO";
    return env;
  };
  job.body = [](ranks::Process& process) {
    trestleComm_t comms[2] = {};
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, kSettings, &comms[0])));
    ASSERT_TRUE(ranks::succeeded(trestleCommSplit(comms[0], 0, process.rank, &comms[1], nullptr)));
    for (trestleComm_t comm : comms) EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  std::istringstream output(outcomes[0].output);
  std::vector<std::string> said;
  for (std::string line; std::getline(output, line);) {
    if (line.find(folder.path() + "/") != std::string::npos) said.push_back(line);
  }
  return said;
}

TEST(CalibrationTest, AFileIsNamedOnce) {
  const TemporaryFolder folder;
  const std::string path = write(folder, measured(500, 100));
  const auto said = said_of_two(folder);
  ASSERT_EQ(said.size(), 1u) << testing::PrintToString(said);
  EXPECT_NE(said[0].find("link speeds as measured at " + trestle::date_text(origin().made_s).substr(0, 10)),
            std::string::npos)
      << said[0];
  EXPECT_NE(said[0].find(path), std::string::npos) << said[0];
}

TEST(CalibrationTest, AFileOfAnotherTimeKernelOrVersionIsNotUsed) {
  const TemporaryFolder folder;
  const std::string nominal = prediction(predictions([&](int) { return variables(folder, "cached"); }));
  const auto expect = [&](auto change, const char* reason) {
    trestle::CalibrationOrigin other = origin();
    change(other);
    write(folder, measured(500, 100), other);
    EXPECT_EQ(prediction(predictions([&](int) { return variables(folder, "cached"); })), nominal) << reason;
    const auto said = said_of_two(folder);
    ASSERT_EQ(said.size(), 1u) << testing::PrintToString(said);
    EXPECT_NE(said[0].find(std::string("is not used: ") + reason), std::string::npos) << said[0];
  };
  expect([](auto& other) { other.made_s -= 31 * 86'400; }, "it is 31 days old");
  expect([](auto& other) { other.version = "0.0.1"; }, "it is of version 0.0.1");
  expect([](auto& other) { other.kernel = "2.6.0"; }, "it was made under kernel 2.6.0");
  expect([](auto& other) { ++other.host_ids; }, "its hosts have been restarted");
}

// Data comes faster than at four times the file's rate, which is low enough for any machine. Segments are large, since
// small ones may come unasked.
TEST(CalibrationTest, FiguresFarBelowTheDataAreDroppedWithOneWarning) {
  const TemporaryFolder folder;
  const std::string path = write(folder, measured(1, 1));
  ranks::Job job;
  job.ranks = kRanks;
  job.env = [&](int) {
    ranks::Env env = variables(folder, "cached");
    env["TRESTLE_SEGMENT"] = "256K";
    return env;
  };
  job.body = [](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(ranks::join(process, kSettings, &comm)));
    std::vector<float> data(size_t{4} << 20);
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(ranks::succeeded(
          trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comm, nullptr), comm));
    }
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  EXPECT_EQ(count_of(outcomes[0].output, "the calibration " + path), 1u) << outcomes[0].output;
  EXPECT_NE(outcomes[0].output.find(" is dropped: it has 0.00 Gb/s in dimension 1 (shm), but data came there at "),
            std::string::npos)
      << outcomes[0].output;
  EXPECT_NE(outcomes[0].output.find("`trestle calibrate`"), std::string::npos) << outcomes[0].output;
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(count_of(outcomes[1].output, "calibration"), 0u) << outcomes[1].output;
}

// Two hosts with a rail of a known rate each.
TEST(CalibrationTest, FiguresFarAboveTheRailsAreNotUsed) {
  const TemporaryFolder folder;
  std::vector<trestle::RankPlace> two;
  for (const char* host : {"calibration-a", "calibration-b"}) two.push_back({trestle::host_name(), host, 1});
  Topology topology = trestle::choose_topology({"2", "", "tcp"}, two).value();
  const uint64_t at = trestle::calibration_key(topology, two);
  const std::string path = trestle::calibration_path(folder.path(), at);
  topology.dimensions[0].latency_ns = 1'000;
  const auto outcome = [&](uint64_t mbps) {
    topology.dimensions[0].bandwidth_mbps = mbps;
    EXPECT_TRUE(
        trestle::write_calibration(path, at, trestle::calibration_origin(two, TRESTLE_VERSION_CODE), topology).ok());
    ranks::Job job;
    job.ranks = 2;
    job.env = [&](int rank) {
      ranks::Env env = variables(folder, "cached");
      env["TRESTLE_HOSTID"] = two[static_cast<size_t>(rank)].host_id;
      env["TRESTLE_RAILS"] = "lo@100m";
      env["TRESTLE_DEBUG"] = "INFO";
      return env;
    };
    job.body = [](ranks::Process& process) {
      trestleComm_t comm = nullptr;
      ASSERT_TRUE(ranks::succeeded(ranks::join(process, {.ranks = 2, .dims = "2", .transport = "tcp"}, &comm)));
      double time_us = 0;
      EXPECT_TRUE(ranks::succeeded(trestlePredictTime(comm, trestleCollAllReduce, 1 << 20, trestleFloat32, &time_us)));
      process.result = std::to_string(time_us);
      EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
    };
    auto outcomes = ranks::run(job);
    ranks::expect_ended_well(outcomes);
    return outcomes;
  };
  const auto near = outcome(399);
  EXPECT_EQ(count_of(near[0].output, "WARN"), 0u) << near[0].output;
  const auto far = outcome(401);
  EXPECT_EQ(count_of(far[0].output, path + " of "), 1u) << far[0].output;
  EXPECT_NE(far[0].output.find("is not used: it has 0.40 Gb/s in dimension 1 (tcp), but its rails carry 0.10 Gb/s"),
            std::string::npos)
      << far[0].output;
  EXPECT_EQ(count_of(far[1].output, "is not used"), 0u) << far[1].output;
  const auto farther = outcome(40'000);
  EXPECT_EQ(prediction(farther), prediction(far)) << "the rails' rate counts";
  EXPECT_NE(prediction(near), prediction(far));
}

// Uses a thousandth and a million times the real speeds, and a resource that is slower than both.
TEST(CalibrationTest, AbsurdNumbersChangeNoResult) {
  Topology slow_shared = measured(1'000'000, 1);
  for (auto& dimension : slow_shared.dimensions) {
    dimension.latency_ns = 1'000'000'000;
    dimension.shared_resource = "everything";
    dimension.shared_ps_per_byte = 1'000'000'000;
  }
  for (const Topology& absurd : {measured(1, 1'000'000), measured(1'000'000, 1), slow_shared}) {
    const TemporaryFolder folder;
    write(folder, absurd);
    for (const char* policy : {"baseline", "themis", "auto"}) {
      ranks::on_processes(
          kSettings,
          [](ranks::Process& process, trestleComm_t comm) {
            for (const size_t count : {size_t{1}, size_t{60'001}}) {
              for (const auto collective : {trestleCollAllReduce, trestleCollReduceScatter, trestleCollAllGather,
                                            trestleCollBroadcast, trestleCollAllToAll}) {
                for (const auto type : {trestleFloat32, trestleInt32}) {
                  api::run_and_verify({.collective = collective, .type = type, .count = count}, process.rank,
                                      process.ranks, comm);
                }
              }
            }
          },
          [&](int) {
            ranks::Env env = variables(folder, "cached");
            env["TRESTLE_SCHED"] = policy;
            return env;
          });
    }
  }
}

TEST(CalibrationTest, FullMeasuresOnceAndKeeps) {
  const TemporaryFolder folder;
  const TemporaryFolder empty;
  const auto env = [&](const std::string& mode) {
    return [&folder, &empty, mode](int rank) {
      ranks::Env env = variables(rank == 0 ? folder : empty, mode);
      env["TRESTLE_DEBUG"] = "INFO";
      return env;
    };
  };
  const auto first = predictions(env("full"));
  EXPECT_EQ(count_of(first[0].output, "calibration written to"), 1u) << first[0].output;
  EXPECT_NE(first[0].output.find("sums may round differently"), std::string::npos);
  const std::string path = trestle::calibration_path(folder.path(), key());
  const auto kept = trestle::read_calibration(path, key(), asked(), origin());
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  ASSERT_TRUE(kept.value().has_value());
  const auto second = predictions(env("full"));
  EXPECT_EQ(count_of(second[0].output, "calibration written to"), 0u);
  EXPECT_EQ(prediction(second), prediction(first));
  EXPECT_EQ(prediction(predictions(env("cached"))), prediction(first));
  EXPECT_TRUE(std::filesystem::is_empty(empty.path()));
}

// Ranks that share one process measure too.
TEST(CalibrationTest, FullAmongThreads) {
  const TemporaryFolder folder;
  ranks::on_threads({.ranks = kRanks, .dims = "2x2"},
                    [](int rank, trestleComm_t comm) { api::run_and_verify({.count = 50'000}, rank, kRanks, comm); },
                    {{"TRESTLE_CALIBRATE", "full"}, {"TRESTLE_CALIBRATION_DIR", folder.path()}});
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
}

// One field requests the measurement, another one names the folder. Both override the variables.
TEST(CalibrationTest, FieldsOfTheConfigStandForTheVariables) {
  const TemporaryFolder folder;
  const TemporaryFolder other;
  ranks::isolated(
      [&] {
        const std::string path = folder.path();
        trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
        config.transport = "shm";
        config.calibrate = "full";
        config.calibrationDir = path.c_str();
        trestleComm_t comms[2] = {};
        ASSERT_TRUE(ranks::succeeded(trestleCommInitAllConfig(comms, 2, &config)));
        for (trestleComm_t comm : comms) EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
      },
      {{"TRESTLE_CALIBRATE", "off"}, {"TRESTLE_CALIBRATION_DIR", other.path()}});
  EXPECT_FALSE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(std::filesystem::is_empty(other.path()));
}

// ---- trestle calibrate

struct Ended {
  int code = -1;
  std::string output;
};

Ended shell(const std::string& line) {
  Ended ended;
  FILE* pipe = popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return ended;
  char buffer[4096];
  for (size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) ended.output.append(buffer, got);
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

const std::string kCommand = TRESTLE_COMMAND;

TEST(CalibrateCommand, MeasuresKeepsAndWritesATopologyFile) {
  const TemporaryFolder folder;
  const std::string variables = "TRESTLE_HOSTID=" + std::string(kHost) + " TRESTLE_CALIBRATION_DIR=" + folder.path() +
                                " TRESTLE_DIMS=2x2 TRESTLE_TRANSPORT=shm TRESTLE_CALIBRATE=cached ";
  const std::string file = folder.path("links.json");
  const Ended ended = shell(variables + kCommand + " run -n 4 -- " + kCommand + " calibrate --out " + file);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_NE(ended.output.find("fitted"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("all-reduce of"), std::string::npos) << ended.output;
  const auto topology = trestle::read_topology_file(file);
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  ASSERT_EQ(topology.value().dimensions.size(), 2u);
  for (const auto& dimension : topology.value().dimensions) {
    EXPECT_EQ(dimension.size, 2);
    EXPECT_GT(dimension.bandwidth_mbps, 0u);
    EXPECT_LT(dimension.latency_ns, 1'000'000'000u);
  }
  EXPECT_EQ(trestle::to_json(topology.value()), [&] {
    std::string text;
    std::getline(std::ifstream(file), text, '\0');
    return text;
  }());
  // Jobs read the same file.
  const auto kept =
      trestle::read_calibration(trestle::calibration_path(folder.path(), key()), key(), asked(), origin());
  ASSERT_TRUE(kept.ok() && kept.value().has_value()) << ended.output;
  EXPECT_EQ(kept.value()->measured.dimensions, topology.value().dimensions);
  const std::string cached = prediction(predictions([&](int) { return ::variables(folder, "cached"); }));
  EXPECT_NE(cached, prediction(predictions([&](int) { return ::variables(folder, "off"); })));
}

TEST(CalibrateCommand, KeepsNothingWhereItIsOff) {
  const TemporaryFolder folder;
  const Ended ended = shell("TRESTLE_CALIBRATE=off TRESTLE_CALIBRATION_DIR=" + folder.path() + " " + kCommand +
                            " run -n 2 -- " + kCommand + " calibrate");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CalibrateCommand, ListsAndForgetsWhatIsKept) {
  const TemporaryFolder folder;
  const std::string command = "TRESTLE_CALIBRATION_DIR=" + folder.path("deep") + " " + kCommand + " calibrate ";
  const Ended nothing = shell(command + "--list");
  EXPECT_EQ(nothing.code, 0);
  EXPECT_EQ(nothing.output, "no calibration is kept in " + folder.path("deep") + "\n");
  const std::string path = trestle::calibration_path(folder.path("deep"), key());
  trestle::CalibrationOrigin from = origin();
  from.made_s = 1'700'000'000;
  ASSERT_TRUE(trestle::write_calibration(path, key(), from, measured(52'800, 100)).ok());
  const std::string old = folder.write("deep/ffffffffffffffff.calibration", "trestle-calibration 1 x\n");
  const std::string others = folder.write("deep/fffffffffffffff0.calibration", "nonsense");
  for (const char* name : {"deep/lens.calibration", "deep/FFFFFFFFFFFFFFFF.calibration", "deep/0.calibration/inside"})
    folder.write(name, "trestle-calibration 2 x\n");
  std::filesystem::create_directory(folder.path("deep/0000000000000000.calibration"));
  const std::string unread = ":1: is not a calibration that this version can read; it is never used\n";
  const Ended list = shell(command + "--list");
  EXPECT_EQ(list.code, 0);
  EXPECT_EQ(list.output, path + "\n  made 2023-11-14T22:13:20Z, expired 2023-12-14T22:13:20Z\n  hosts: " + from.hosts +
                             "; kernel " + from.kernel + "; Trestle " + from.version +
                             "\n  dimension 1: 2 ranks over shm, 52.80 Gb/s, 1.0 us\n" +
                             "  dimension 2: 2 ranks over shm, 0.10 Gb/s, 1.0 us\n" + others + unread + old + unread);
  const Ended forget = shell(command + "--forget");
  EXPECT_EQ(forget.code, 0);
  EXPECT_EQ(forget.output,
            "forgotten: " + path + "\nleft, as it is no calibration: " + others + "\nforgotten: " + old + "\n");
  EXPECT_FALSE(std::filesystem::exists(path) || std::filesystem::exists(old));
  const auto left = std::filesystem::directory_iterator(folder.path("deep"));
  EXPECT_EQ(std::distance(begin(left), end(left)), 5) << "what is not Trestle's";
  EXPECT_EQ(shell(command + "--list --forget").code, 2);
  EXPECT_EQ(shell(command + "--forget --out x").code, 2);
  const Ended nowhere =
      shell("env -u HOME -u XDG_CACHE_HOME -u TRESTLE_CALIBRATION_DIR " + kCommand + " calibrate --list");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.output.find("TRESTLE_CALIBRATION_DIR"), std::string::npos) << nowhere.output;
}

TEST(CalibrateCommand, BadCallsAreSaid) {
  const Ended alone = shell("env -u RANK -u WORLD_SIZE " + kCommand + " calibrate");
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.output.find("every rank of a job"), std::string::npos) << alone.output;
  const Ended one = shell(kCommand + " run -n 1 -- " + kCommand + " calibrate");
  EXPECT_EQ(one.code, 2);
  EXPECT_NE(one.output.find("one rank alone"), std::string::npos) << one.output;
  const Ended dims = shell("TRESTLE_DIMS=3x2 " + kCommand + " run -n 4 -- " + kCommand + " calibrate");
  EXPECT_NE(dims.code, 0);
  EXPECT_NE(dims.output.find("6 ranks"), std::string::npos) << dims.output;
}

}  // namespace
