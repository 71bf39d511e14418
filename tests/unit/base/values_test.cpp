// Types, value grammars, hash, generator, descriptors, host facts, launcher variables.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/clock.h"
#include "base/config/launcher.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/rng.h"
#include "base/text/names.h"
#include "base/text/value_text.h"
#include "base/thread.h"
#include "base/types.h"
#include "base/unique_fd.h"

namespace trestle {
namespace {

TEST(Result, CarriesValueOrError) {
  const auto half = [](int x) -> Result<int> {
    if (x % 2 != 0) return Error{Code::kInvalidArgument, "odd"};
    return x / 2;
  };
  const auto quarter = [&](int x) -> Result<int> {
    const int h = TRY(half(x));
    return TRY(half(h));
  };
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(6).error().code, Code::kInvalidArgument);
  for (int code = 0; code <= 9; ++code) EXPECT_STRNE(to_string(static_cast<Code>(code)), "unknown result code");
}

TEST(CheckDeathTest, PrintsConditionAndSentence) {
  const int ranks = 0;
  EXPECT_DEATH(CHECK(ranks > 0, "a group has no ranks"), "values_test.cpp:.*ranks > 0: a group has no ranks");
  EXPECT_DEATH((void)Result<int>(Error{Code::kTimeout, "late"}).value(), "failed Result");
}

TEST(ThreadDeathTest, AnExceptionEndsTheProcessWithASentence) {
  EXPECT_DEATH(run_or_end_process("in a test", [] { throw 1; }),
               "trestle: unexpected exception in a test: the process ends");
}

TEST(Types, NumbersAreNccls) {
  EXPECT_EQ(static_cast<int>(DataType::kFloat16), 6);
  EXPECT_EQ(static_cast<int>(DataType::kBfloat16), 9);
  EXPECT_EQ(static_cast<int>(DataType::kFloat8e5m2), 11);
  EXPECT_EQ(static_cast<int>(ReduceOp::kMax), 2);
  EXPECT_EQ(static_cast<int>(ReduceOp::kAvg), 4);
}

TEST(Types, NamesRoundTrip) {
  std::set<std::string> names;
  for (size_t i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(to_string(type)).value(), type);
    EXPECT_GT(size_of(type), 0u);
    names.insert(to_string(type));
  }
  for (size_t i = 0; i < kReduceOps; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    EXPECT_EQ(parse_reduce_op(to_string(op)).value(), op);
    names.insert(to_string(op));
  }
  for (size_t i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    EXPECT_EQ(parse_collective(to_string(collective)).value(), collective);
    names.insert(to_string(collective));
  }
  EXPECT_EQ(names.size(), kDataTypes + kReduceOps + kCollectives);
  EXPECT_EQ(parse_collective("all_reduce").value(), Collective::kAllReduce);
  EXPECT_EQ(parse_collective("reduce_scatter").value(), Collective::kReduceScatter);
  EXPECT_EQ(parse_collective("all_gather_v").value(), Collective::kAllGatherV);
  EXPECT_EQ(parse_collective("all_redcue").error().message.substr(0, 60),
            "'all_redcue' is not a collective; did you mean allreduce? Th");
  EXPECT_STREQ(to_string(static_cast<DataType>(12)), "invalid");
  EXPECT_EQ(size_of(static_cast<DataType>(12)), 0u);
  EXPECT_FALSE(is_valid(static_cast<DataType>(255)));
  const auto wrong = parse_data_type("float31");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("'float31'"), std::string::npos);
  EXPECT_NE(wrong.error().message.find("bfloat16"), std::string::npos);
}

TEST(ValueText, Bytes) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"0", 0},          {"4096", 4096},   {"64k", 65536},
      {"64KiB", 65536},  {"2MB", 2 << 20}, {"3G", 3LL << 30},
      {"1.5M", 3 << 19}, {".5K", 512},     {"1.K", 1024},
      {"2.7", 2},        {"0.1K", 102},    {"9223372036854775807", std::numeric_limits<int64_t>::max()}};
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_bytes(text).value(), bytes) << text;
  for (const char* wrong : {"", "K", ".", "-1", "-.5", "1.5.2M", "0x10", "1e3", "inf", "64Q", "64KK", "1.5B5",
                            "9999999999999999999", "9999999999999G", "9999999.5T", " 1", "iB"}) {
    EXPECT_FALSE(parse_bytes(wrong).ok()) << wrong;
  }
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{1} << 16, int64_t{3} << 30}) {
    EXPECT_EQ(parse_bytes(bytes_text(bytes)).value(), bytes);
  }
  EXPECT_EQ(bytes_text(64 << 20), "64M");
}

TEST(ValueText, Durations) {
  EXPECT_EQ(parse_duration_ns("5").value(), 5'000'000'000);
  EXPECT_EQ(parse_duration_ns("1.5s").value(), 1'500'000'000);
  EXPECT_EQ(parse_duration_ns("200ms").value(), 200'000'000);
  EXPECT_EQ(parse_duration_ns("50us").value(), 50'000);
  EXPECT_EQ(parse_duration_ns("10m").value(), 600'000'000'000);
  EXPECT_EQ(parse_duration_ns("2h").value(), 7'200'000'000'000);
  for (const char* wrong : {"", "s", "1 s", "-1s", "1d", "1.2.3s", "99999999999999h", "."}) {
    EXPECT_FALSE(parse_duration_ns(wrong).ok()) << wrong;
  }
  for (const char* text : {"10m", "5s", "200ms", "1h", "90s"}) {
    EXPECT_EQ(duration_text(parse_duration_ns(text).value()), text);
  }
}

TEST(ValueText, DimensionsAndPorts) {
  EXPECT_EQ(parse_dimensions("4x2").value(), (std::vector<uint32_t>{4, 2}));
  EXPECT_EQ(parse_dimensions("8").value(), (std::vector<uint32_t>{8}));
  EXPECT_TRUE(parse_dimensions("").value().empty());
  for (const char* wrong : {"4x", "x2", "0x2", "4*2", "-4x2", "65536x65536", "4xx2", "4,2"}) {
    EXPECT_FALSE(parse_dimensions(wrong).ok()) << wrong;
  }
  EXPECT_EQ(parse_port_range("5000-5999").value(), (PortRange{5000, 5999}));
  EXPECT_EQ(parse_port_range("5000").value(), (PortRange{5000, 5000}));
  EXPECT_EQ(parse_port_range("").value(), PortRange{});
  for (const char* wrong : {"0-10", "10-5", "1-65536", "a-b", "1-", "-1", "1-2-3"}) {
    EXPECT_FALSE(parse_port_range(wrong).ok()) << wrong;
  }
}

TEST(ValueText, BooleansSplitDistance) {
  EXPECT_TRUE(parse_boolean("On").value());
  EXPECT_FALSE(parse_boolean("no").value());
  EXPECT_FALSE(parse_boolean("2").ok());
  EXPECT_TRUE(split("", ',').empty());
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(ValueText, UnknownNamesGetTheNearest) {
  const std::vector<std::string_view> known = {"ring", "tree", "double_binary_tree"};
  EXPECT_EQ(unknown_name("rign", "an algorithm", known).message,
            "'rign' is not an algorithm; did you mean ring? There are ring, tree, double_binary_tree");
  EXPECT_EQ(unknown_name("best", "an algorithm", known).message,
            "'best' is not an algorithm; there are ring, tree, double_binary_tree");
  EXPECT_EQ(nearest_name("TREE", known), "; did you mean tree?") << "however it is written";
  EXPECT_EQ(nearest_name("double_tree", known), "") << "too many slips";
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name("ring", {}), "");
}

// Ranks of different hosts compare these digests, so a change of these values changes the wire format.
TEST(Hash, IsStable) {
  EXPECT_EQ(Hasher().digest(), splitmix64_mix(0xcbf29ce484222325u));
  EXPECT_EQ(Hasher().integer(1).digest(), Hasher().integer(1).digest());
  EXPECT_NE(Hasher().string("ab").string("c").digest(), Hasher().string("a").string("bc").digest());
  EXPECT_NE(Hasher().integer(1).integer(2).digest(), Hasher().integer(2).integer(1).digest());
  const std::array<std::byte, 2> bytes{std::byte{'a'}, std::byte{'b'}};
  EXPECT_EQ(Hasher().bytes(bytes).digest(), Hasher().string("ab").digest());
}

TEST(Rng, IsSplitmix64) {
  Rng rng(1234567);  // first outputs of the reference implementation for this seed
  EXPECT_EQ(rng.next(), 6457827717110365317u);
  EXPECT_EQ(rng.next(), 3203168211198807973u);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(rng.below(7), 7u);
    const double u = rng.uniform();
    EXPECT_TRUE(u >= 0 && u < 1);
  }
  EXPECT_EQ(rng.below(0), 0u);
}

TEST(UniqueFd, ClosesOnce) {
  UniqueFd first(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(first);
  const int fd = first.get();
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): the test checks the moved-from object
  EXPECT_EQ(second.get(), fd);
  second.reset();
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(Host, KnowsItself) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_EQ(boot_id().find('\n'), std::string::npos);
}

TEST(Clock, NeverGoesBack) {
  Clock& clock = monotonic_clock();
  const int64_t before = clock.now_ns();
  EXPECT_GE(clock.now_ns(), before);
}

TEST(Launcher, Torchrun) {
  const Launcher launcher = read_launcher(
      {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(launcher.source, "torchrun");
  EXPECT_EQ(launcher.rank, 3);
  EXPECT_EQ(launcher.world_size, 8);
  EXPECT_EQ(launcher.local_rank, 1);
  EXPECT_EQ(launcher.master_address, "node0");
  EXPECT_EQ(launcher.master_port, 29500);
  EXPECT_TRUE(launcher.problem.empty());
}

TEST(Launcher, TorchrunComesFirstAndOpenMpiKnowsLocalJobs) {
  Environment environment = {{"OMPI_COMM_WORLD_RANK", "1"},
                             {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  EXPECT_EQ(read_launcher(environment).source, "Open MPI");
  EXPECT_EQ(read_launcher(environment).master_address, "127.0.0.1");
  environment["RANK"] = "0";
  EXPECT_EQ(read_launcher(environment).source, "Open MPI");  // RANK alone may belong to any program
  environment["WORLD_SIZE"] = "2";
  EXPECT_EQ(read_launcher(environment).source, "torchrun");
}

TEST(Launcher, SlurmOnlyInsideAStep) {
  Environment environment = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(read_launcher(environment).source, "");
  environment["SLURM_STEP_NODELIST"] = "node[03-05,9],x1";
  EXPECT_EQ(read_launcher(environment).source, "Slurm");
  EXPECT_EQ(read_launcher(environment).master_address, "node03");
  EXPECT_EQ(first_slurm_node("a,b"), "a");
  EXPECT_EQ(first_slurm_node("a"), "a");
  EXPECT_EQ(first_slurm_node("a,b[1-2]"), "a");
  EXPECT_EQ(first_slurm_node("r[1-2]-eth"), "r1-eth");
  EXPECT_EQ(first_slurm_node("r[7"), "r7");
}

TEST(Launcher, BadNumbersAreNamed) {
  const Launcher launcher = read_launcher({{"RANK", "8"}, {"WORLD_SIZE", "8"}});
  EXPECT_FALSE(launcher.rank.has_value());
  EXPECT_NE(launcher.problem.find("RANK=8"), std::string::npos);
  EXPECT_NE(read_launcher({{"MASTER_PORT", "http"}}).problem.find("MASTER_PORT=http"), std::string::npos);
  EXPECT_TRUE(read_launcher({}).source.empty());
}

}  // namespace
}  // namespace trestle
