// A rank that waits for others for long says for whom, in the log at its default level.
#include <gtest/gtest.h>

#include "local/api/sockets.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace waiting_test {
namespace {

struct Way {
  const char* name;
  int late;              // the rank that comes when the other one has said the sentence
  const char* sentence;  // of the other one
};

class WaitingTest : public testing::TestWithParam<Way> {};

TEST_P(WaitingTest, IsSaid) {
  const Way& way = GetParam();
  const uint16_t port = free_port(8);
  const TemporaryFolder folder;
  folder.write("log", "");
  ranks::Job job;
  job.ranks = 2;
  job.env = [&](int rank) {
    ranks::Env env = {{"RANK", std::to_string(rank)},
                      {"WORLD_SIZE", "2"},
                      {"LOCAL_RANK", "0"},
                      {"TRESTLE_DEBUG_FILE", folder.path("log")},
                      {"MASTER_PORT", std::to_string(port)},
                      {"MASTER_ADDR", "127.0.0.1"}};
    if (way.name == std::string("Store")) env["TRESTLE_STORE"] = "file:" + folder.path("store");
    return env;
  };
  job.body = [&](ranks::Process& process) {
    if (process.rank == way.late)
      ranks::wait_until([&] { return ranks::contains(folder.content("log"), way.sentence); });
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitRank(&comm, 2, trestleUniqueId{}, process.rank)));
    EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  };
  ranks::expect_ended_well(ranks::run(job));
}

INSTANTIATE_TEST_SUITE_P(Ways, WaitingTest,
                         testing::Values(Way{"Root", 1, "1 of 2 ranks have come; missing: rank 1"},
                                         Way{"NoRoot", 0, "has waited 10 s for rank 0 at the rendezvous at 127.0.0.1:"},
                                         Way{"Store", 1, "has waited 10 s for rank 1 at file:"}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace waiting_test
}  // namespace api
