// The perf binaries' command line: accepted options, and the sentences for refused ones.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perf/driver/options.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

ParsedOptions parse(const std::vector<std::string>& words) {
  std::vector<std::string> copy = words;
  std::vector<char*> argv = {const_cast<char*>("perf")};
  for (std::string& word : copy) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(argv.size()) - 1, argv.data());
}

TEST(PerfOptions, DefaultsAreThoseOfNcclTests) {
  const ParsedOptions parsed = parse({});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.options.min_bytes, 32u << 20);
  EXPECT_EQ(parsed.options.max_bytes, 32u << 20);
  EXPECT_EQ(parsed.options.iters, 20);
  EXPECT_EQ(parsed.options.checks, 1);
  EXPECT_EQ(parsed.options.types, std::vector<trestleDataType_t>{trestleFloat32});
  EXPECT_EQ(parsed.options.ops, std::vector<trestleRedOp_t>{trestleSum});
}

TEST(PerfOptions, UnderstandsShortAndLongFlags) {
  const Options options = parse({"-b",     "8",         "--maxbytes=1.5K",
                                 "-f2",    "-d",        "bfloat16",
                                 "--op",   "avg",       "-r",
                                 "all",    "-P",        "4",
                                 "-t",     "2",         "-g",
                                 "3",      "-z",        "3",
                                 "-a",     "0",         "-C",
                                 "1",      "--predict", "8K,1M",
                                 "--bind", "none"})
                              .options;
  EXPECT_EQ(options.min_bytes, 8u);
  EXPECT_EQ(options.max_bytes, 1536u);
  EXPECT_EQ(options.step_factor, 2);
  EXPECT_EQ(options.types, std::vector<trestleDataType_t>{trestleBfloat16});
  EXPECT_EQ(options.ops, std::vector<trestleRedOp_t>{trestleAvg});
  EXPECT_EQ(options.root, -1);
  EXPECT_EQ(options.processes, 4);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.ranks_per_thread, 3);
  EXPECT_EQ(options.blocking, 3);
  EXPECT_EQ(options.average, 0);
  EXPECT_TRUE(options.report_cpu_time);
  EXPECT_EQ(options.predict_bytes, (std::vector<size_t>{8192, 1 << 20}));
  EXPECT_FALSE(options.bind);
}

TEST(PerfOptions, KnowsBackendsAndPlaces) {
  const Options defaults = parse({}).options;
  EXPECT_FALSE(defaults.compare_nccl);
  EXPECT_FALSE(defaults.call_times);
  EXPECT_EQ(defaults.location, Location::kAuto);
  const Options options =
      parse({"--backend", "nccl", "--nccl-library", "x/libnccl.so.2", "--location", "device", "--call-times", "1"})
          .options;
  EXPECT_TRUE(options.compare_nccl);
  EXPECT_TRUE(options.call_times);
  EXPECT_EQ(options.nccl_library, "x/libnccl.so.2");
  EXPECT_EQ(options.location, Location::kDevice);
  EXPECT_FALSE(parse({"--backend", "nccl", "--backend=trestle"}).options.compare_nccl);
  EXPECT_EQ(parse({"--location", "host"}).options.location, Location::kHost);
  EXPECT_EQ(parse({"-G", "3"}).options.graph_launches, 3);
  EXPECT_EQ(parse({"-G", "0"}).options.graph_launches, 0);
}

TEST(PerfOptions, RefusesUnknownBackendsAndPlaces) {
  EXPECT_NE(parse({"--backend", "gloo"}).error.find("'gloo'"), std::string::npos);
  EXPECT_NE(parse({"--location", "disk"}).error.find("auto, host or device, not 'disk'"), std::string::npos);
  EXPECT_NE(parse({"--call-times", "2"}).error.find("0 or 1, not '2'"), std::string::npos);
  EXPECT_NE(parse({"--backend", "nccl", "--nccl-library", ""}).error.find("takes the file"), std::string::npos);
  EXPECT_NE(parse({"--nccl-library", "x"}).error.find("--backend nccl"), std::string::npos);
}

TEST(PerfOptions, TheLastFlagHolds) {
  EXPECT_EQ(parse({"-P", "8", "-b", "8", "-P", "0"}).options.processes, 0);
}

TEST(PerfOptions, AllMeansEveryTypeAndOperator) {
  const Options options = parse({"-d", "all", "-o", "all"}).options;
  EXPECT_EQ(options.types.size(), static_cast<size_t>(trestleNumTypes));
  EXPECT_EQ(options.ops.size(), static_cast<size_t>(kOps));
  EXPECT_EQ(options.ops.back(), kMulSum);
}

TEST(PerfOptions, FlagsOfGpusAreAnsweredWithASentence) {
  const ParsedOptions parsed = parse({"-G", "1", "-x", "0", "-M", "1", "-D", "2", "-V", "16"});
  EXPECT_EQ(parsed.error, "");
  ASSERT_EQ(parsed.options.remarks.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(parsed.options.remarks[i].substr(0, 2), std::string("-") + "MDV"[i]);
}

TEST(PerfOptions, TailsAndReports) {
  const Options options = parse({"-I", "1", "-K", "3", "-J", "out.JSON"}).options;
  EXPECT_TRUE(options.per_iteration);
  EXPECT_EQ(options.skipped_iterations, 3);
  EXPECT_EQ(options.json_path, "out.JSON");
  EXPECT_EQ(options.rail_stats, 0);
  EXPECT_EQ(parse({"--rail_stats", "2"}).options.rail_stats, 2);
}

TEST(PerfOptions, RefusesWithASentence) {
  const struct {
    std::vector<std::string> words;
    const char* part;
  } kCases[] = {
      {{"-Q"}, "no flag -Q"},
      {{"-J", "x.txt"}, "ends with .json"},
      {{"-J", ".json"}, "ends with .json"},
      {{"-I", "2"}, "-I takes 0 or 1"},
      {{"-I", "1", "-n", "5", "-K", "5"}, "there are only 5"},
      {{"--nonsense"}, "no flag '--nonsense'"},
      {{"-b"}, "-b needs a value"},
      {{"-b", "0"}, "-b must be at least 1"},
      {{"-b", "1X"}, "-b takes a size"},
      {{"-b", "64M"}, "is more than -e"},
      {{"-d", "int7"}, "int8 uint8 int32"},
      {{"-o", "sumsum"}, "sum prod max min avg"},
      {{"-n", "0"}, "-n takes a whole number from 1"},
      {{"-n", "3x"}, "-n takes a whole number"},
      {{"-z", "4"}, "0 to 3"},
      {{"-X", "3"}, "-X takes a whole number 0 to 2, not '3'"},
      {{"-r", "first"}, "-r takes a rank"},
      {{"-i", "0"}, "-i must be at least 1"},
      {{"-p", "yes"}, "-p takes 0 or 1"},
      {{"--predict", "8K,,1M"}, "--predict takes sizes"},
      {{"--bind", "socket"}, "--bind takes core or none, not 'socket'"},
      {{"8"}, "unexpected argument '8'"},
  };
  for (const auto& c : kCases) {
    EXPECT_NE(parse(c.words).error.find(c.part), std::string::npos) << c.words[0] << ": " << parse(c.words).error;
  }
}

TEST(PerfOptions, UsageNamesEveryFlag) {
  const std::string usage = usage_text("all_reduce_perf");
  std::string letters;
  for (const FlagName& flag : flag_names()) {
    const std::string text = (flag.letter != 0 ? std::string("-") + flag.letter + ", " : "") + "--" + flag.name + " ";
    EXPECT_NE(usage.find("  " + text), std::string::npos) << text;
    if (flag.letter != 0) letters += flag.letter;
  }
  for (const char flag : std::string("tgbeifnwmNpcodrzyTGCSJaRxDVMuIKhPX")) {
    EXPECT_NE(letters.find(flag), std::string::npos) << flag;
  }
}

TEST(PerfOptions, Sizes) {
  EXPECT_EQ(parse_size("8"), 8u);
  EXPECT_EQ(parse_size("64k"), 65536u);
  EXPECT_EQ(parse_size("2.5M"), 2621440u);
  EXPECT_EQ(parse_size("1G"), 1u << 30);
  for (const char* bad : {"", "M", "-1", "1e3", "0x10", "1MB", " 1", "1.2.3", "99999999999G"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
}

std::vector<size_t> sweep(const Options& options) {
  std::vector<size_t> sizes;
  for (size_t bytes = options.min_bytes; bytes != 0; bytes = next_size(options, bytes)) sizes.push_back(bytes);
  return sizes;
}

TEST(PerfOptions, Sweeps) {
  EXPECT_EQ(sweep(parse({"-b", "8", "-e", "600", "-f", "8"}).options), (std::vector<size_t>{8, 64, 512}));
  EXPECT_EQ(sweep(parse({"-b", "8", "-e", "20", "-i", "6"}).options), (std::vector<size_t>{8, 14, 20}));
  EXPECT_EQ(sweep(parse({"-b", "8", "-e", "8"}).options), (std::vector<size_t>{8}));
}

}  // namespace
}  // namespace trestle::perf
