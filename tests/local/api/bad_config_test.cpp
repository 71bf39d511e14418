// Wrong environments: interfaces, ports, variables, topology files, ranks that disagree. Each is refused with a
// sentence that names the error, on every rank that it concerns, and nothing hangs.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "conformance/api_call.h"
#include "local/api/sockets.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace bad_config_test {
namespace {

using ranks::refused;
using ranks::succeeded;

// Every rank of a job is refused with the code and the facts. Then it may try the same again with corrected variables.
void expect_refused(int n, const ranks::Settings& settings, const std::function<ranks::Env(int)>& env,
                    trestleResult_t code, const std::vector<std::string>& facts) {
  ranks::Job job;
  job.ranks = n;
  job.env = env;
  job.body = [&](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    EXPECT_TRUE(refused(ranks::join(process, settings, &comm), code, facts)) << "rank " << process.rank;
    EXPECT_EQ(comm, nullptr);
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST(ApiBadConfig, InterfaceThatIsNotThere) {
  ranks::isolated(
      [] {
        trestleUniqueId id;
        EXPECT_TRUE(
            refused(trestleGetUniqueId(&id), trestleInvalidArgument, {"TRESTLE_SOCKET_IFNAME", "=nosuch7", "lo"}));
      },
      {{"TRESTLE_SOCKET_IFNAME", "=nosuch7"}});
}

TEST(ApiBadConfig, InterfaceOfATopologyFileThatIsNotThere) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("t.json", R"({"dimensions":[{"size":2,"transport":"tcp","interface":"nosuch7"}]})");
  ranks::isolated([&] {
    const ranks::Settings settings{.ranks = 2, .topo_file = path};
    const trestleConfig_t config = config_of(settings);
    trestleComm_t comms[2] = {};
    EXPECT_TRUE(refused(trestleCommInitAllConfig(comms, 2, &config), trestleInvalidArgument,
                        {"the topology", "nosuch7", "lo"}));
    EXPECT_EQ(comms[0], nullptr);
  });
}

TEST(ApiBadConfig, FullPortRange) {
  const uint16_t first = free_port(2);
  const std::string range = std::to_string(first) + "-" + std::to_string(first + 1);
  const ranks::Env env{
      {"TRESTLE_PORT_RANGE", range}, {"TRESTLE_SOCKET_IFNAME", "=lo"}, {"TRESTLE_SOCKET_FAMILY", "AF_INET"}};
  {
    const Listener one(first);
    const Listener two(static_cast<uint16_t>(first + 1));
    ASSERT_TRUE(one.ok() && two.ok());
    ranks::isolated(
        [&] {
          trestleUniqueId id;
          EXPECT_TRUE(refused(trestleGetUniqueId(&id), trestleSystemError,
                              {std::to_string(first), std::to_string(first + 1), "in use"}));
        },
        env);
  }
  ranks::isolated(
      [&] {
        trestleUniqueId id;
        EXPECT_TRUE(succeeded(trestleGetUniqueId(&id))) << "the ports are free again";
      },
      env);
}

// A port range that is large enough works, and a tcp job listens inside it.
TEST(ApiBadConfig, PortRangeWithRoom) {
  const uint16_t first = free_port(12);
  const std::string range = std::to_string(first) + "-" + std::to_string(first + 11);
  ranks::on_processes(
      {.ranks = 3, .transport = "tcp"},
      [](ranks::Process& process, trestleComm_t comm) {
        run_and_verify({.count = 10'000}, process.rank, process.ranks, comm);
      },
      [&](int) {
        return ranks::Env{{"TRESTLE_PORT_RANGE", range}, {"TRESTLE_SOCKET_IFNAME", "=lo"}};
      });
}

TEST(ApiBadConfig, ValuesThatCannotBeRead) {
  const struct {
    const char* name;
    const char* value;
  } wrong[] = {{"TRESTLE_CHUNKS", "many"},       {"TRESTLE_TIMEOUT", "soon"},     {"TRESTLE_PORT_RANGE", "9-1"},
               {"TRESTLE_DIMS", "4by2"},         {"TRESTLE_TRANSPORT", "pigeon"}, {"TRESTLE_SEGMENT", "2000G"},
               {"TRESTLE_SOCKET_FAMILY", "ipx"}, {"TRESTLE_EXPRESS_BYTES", "9K"}};
  for (const auto& [name, value] : wrong) {
    ranks::isolated(
        [&, name = name, value = value] {
          trestleComm_t comms[2] = {};
          EXPECT_TRUE(refused(trestleCommInitAll(comms, 2, nullptr), trestleInvalidArgument, {name, value}));
        },
        {{name, value}});
  }
}

// An unknown variable causes a warning with the nearest known name, and nothing fails.
TEST(ApiBadConfig, UnknownVariablesAreWarnedAbout) {
  ranks::Job job;
  job.env = [](int) { return ranks::Env{{"TRESTLE_CHUNCKS", "4"}}; };
  job.body = [](ranks::Process&) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(trestleCommInitAll(&comm, 1, nullptr)));
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  EXPECT_TRUE(ranks::contains(outcomes[0].output, "TRESTLE_CHUNCKS")) << outcomes[0].output;
  EXPECT_TRUE(ranks::contains(outcomes[0].output, "TRESTLE_CHUNKS")) << outcomes[0].output;
}

// tests/unit/topology has all mistakes that a file can have.
TEST(ApiBadConfig, MalformedTopologyFiles) {
  const struct {
    const char* text;
    std::vector<std::string> facts;
  } files[] = {{"{\"dimensions\":[{\"size\":2,\n\n\"bandwith_gbps\":3}]}", {"broken.json:3:", "bandwidth_gbps"}},
               {"{\"dimensions\":[{\"size\":3}]}", {"broken.json", "3", "2"}}};
  const TemporaryFolder folder;
  for (const auto& [text, facts] : files) {
    const std::string path = folder.write("broken.json", text);
    ranks::isolated([&, facts = facts] {
      const ranks::Settings settings{.ranks = 2, .topo_file = path};
      const trestleConfig_t config = config_of(settings);
      trestleComm_t comms[2] = {};
      EXPECT_TRUE(refused(trestleCommInitAllConfig(comms, 2, &config), trestleInvalidArgument, facts));
      EXPECT_EQ(comms[0], nullptr);
    });
  }
}

TEST(ApiBadConfig, TopologyFileThatDiffersBetweenRanks) {
  const TemporaryFolder folder;
  const std::string a = folder.write("a.json", R"({"dimensions":[{"size":3,"kind":"ring","latency_ns":700}]})");
  const std::string b = folder.write("b.json", R"({"dimensions":[{"size":3,"kind":"ring","latency_ns":900}]})");
  const auto env = [&](int rank) { return ranks::Env{{"TRESTLE_TOPO_FILE", rank == 1 ? b : a}}; };
  expect_refused(3, {.ranks = 3, .timeout_ms = 20'000}, env, trestleInvalidUsage, {"rank 1", "700", "900"});
}

// Two files with the same contents are equal, and so are two layouts of the same text.
TEST(ApiBadConfig, TopologyFilesThatMeanTheSame) {
  const TemporaryFolder folder;
  const std::string a = folder.write("a.json", R"({"dimensions":[{"size":2,"kind":"ring"}]})");
  const std::string b = folder.write("b.json", "{\"dimensions\": [\n  {\"kind\": \"ring\", \"size\": 2}\n]}\n");
  ranks::on_processes(
      {.ranks = 2},
      [](ranks::Process& process, trestleComm_t comm) { run_and_verify({.count = 99}, process.rank, 2, comm); },
      [&](int rank) {
        return ranks::Env{{"TRESTLE_TOPO_FILE", rank == 1 ? b : a}};
      });
}

TEST(ApiBadConfig, ConfigurationThatDiffersBetweenRanks) {
  const struct {
    const char* name;
    const char* of_one;
    const char* of_others;
  } differences[] = {{"TRESTLE_ALGO", "ring", "hd"}, {"TRESTLE_CHUNKS", "3", "4"}, {"TRESTLE_DIMS", "3", "3x1"}};
  for (const auto& d : differences) {
    const auto env = [&](int rank) { return ranks::Env{{d.name, rank == 1 ? d.of_one : d.of_others}}; };
    expect_refused(3, {.ranks = 3, .timeout_ms = 20'000}, env, trestleInvalidUsage,
                   {"rank 1", d.name, d.of_one, d.of_others});
  }
  const auto one_unset = [](int rank) { return rank == 2 ? ranks::Env{{"TRESTLE_EAGER", "4K"}} : ranks::Env{}; };
  expect_refused(3, {.ranks = 3, .timeout_ms = 20'000}, one_unset, trestleInvalidUsage, {"rank 2", "TRESTLE_EAGER"});
}

// Two processes claim the same rank, or ranks disagree about the number of ranks.
TEST(ApiBadConfig, RanksThatDisagree) {
  for (const bool twice : {true, false}) {
    ranks::Job job;
    job.ranks = 3;
    job.body = [&](ranks::Process& process) {
      const trestleUniqueId& id = ranks::id_of(process);
      const ranks::Settings settings{.ranks = 3};
      const trestleConfig_t config = config_of(settings);
      trestleComm_t comm = nullptr;
      const int rank = twice && process.rank == 2 ? 1 : process.rank;
      const int n = !twice && process.rank == 2 ? 4 : 3;
      const trestleResult_t result = trestleCommInitRankConfig(&comm, n, id, rank, &config);
      const std::vector<std::string> facts =
          twice ? std::vector<std::string>{"rank 1"} : std::vector<std::string>{"3", "4"};
      EXPECT_NE(result, trestleSuccess);
      EXPECT_NE(result, trestleTimeout) << trestleGetLastError(nullptr);
      EXPECT_TRUE(refused(result, result, facts)) << "process " << process.rank;
      ranks::meet(process.board, 3);  // the process that made the id stays until all have their answer
    };
    ranks::expect_ended_well(ranks::run(job));
  }
}

size_t open_descriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

// At every limit of descriptors that is too low the caller gets a code and a sentence, and nothing remains.
TEST(ApiBadConfig, TooFewDescriptors) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    SCOPED_TRACE(transport);
    ranks::isolated([&] {
      // Another helper would keep a descriptor.
      ASSERT_EQ(setenv("TRESTLE_PROGRESS_THREADS", "1", 1), 0);
      const ranks::Settings settings{.ranks = 2, .transport = transport, .timeout_ms = 20'000};
      const trestleConfig_t config = config_of(settings);
      trestleComm_t comms[2] = {};
      const auto make = [&] { return trestleCommInitAllConfig(comms, 2, &config); };
      const auto end = [&] {
        for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      };
      ASSERT_TRUE(succeeded(make()));  // the process keeps some descriptors
      end();
      const size_t before = open_descriptors();
      rlimit limit{};
      ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
      const rlim_t all = limit.rlim_cur;
      const auto allow = [&](rlim_t descriptors) {
        limit.rlim_cur = descriptors;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
      };
      trestleResult_t result = trestleSystemError;
      for (rlim_t few = 3; few < 100; ++few) {
        SCOPED_TRACE(few);
        allow(few);
        result = make();
        allow(all);
        if (result == trestleSuccess) break;
        EXPECT_TRUE(refused(result, trestleSystemError, {}));
        // The helper thread may still hold descriptors.
        ranks::wait_until([&] { return open_descriptors() <= before; });
      }
      ASSERT_EQ(result, trestleSuccess);
      end();
    });
  }
}

TEST(ApiBadConfig, SharedMemoryBetweenHosts) {
  const auto env = [](int rank) { return ranks::Env{{"TRESTLE_HOSTID", rank == 0 ? "left" : "right"}}; };
  expect_refused(2, {.ranks = 2, .transport = "shm", .timeout_ms = 20'000}, env, trestleInvalidArgument,
                 {"shm", "rank 0", "rank 1"});
}

}  // namespace
}  // namespace bad_config_test
}  // namespace api
