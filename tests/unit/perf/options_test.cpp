// The perf binaries' command line: accepted options, and the sentences for refused ones.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perf/driver/options.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

using Types = std::vector<trestleDataType_t>;
using Ops = std::vector<trestleRedOp_t>;

ParsedOptions parse(const std::vector<std::string>& words) {
  std::vector<std::string> copy = words;
  std::vector<char*> argv = {const_cast<char*>("perf")};
  for (std::string& word : copy) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(argv.size()) - 1, argv.data());
}

TEST(PerfOptions, AreUnderstood) {
  const struct {
    std::vector<std::string> words;
    bool (*holds)(const Options& o);
  } kCases[] = {
      {{}, [](const Options& o) { return o.min_bytes == 32u << 20 && o.max_bytes == 32u << 20 && o.iters == 20; }},
      {{}, [](const Options& o) { return o.checks == 1 && o.rail_stats == 0 && o.location == Location::kAuto; }},
      {{}, [](const Options& o) { return o.types == Types{trestleFloat32} && o.ops == Ops{trestleSum}; }},
      {{}, [](const Options& o) { return !o.compare_nccl && !o.call_times && o.bind; }},
      {{"-b", "8", "--maxbytes=1.5K"}, [](const Options& o) { return o.min_bytes == 8 && o.max_bytes == 1536; }},
      {{"-f2"}, [](const Options& o) { return o.step_factor == 2; }},
      {{"-d", "bfloat16"}, [](const Options& o) { return o.types == Types{trestleBfloat16}; }},
      {{"-d", "all"}, [](const Options& o) { return o.types.size() == static_cast<size_t>(trestleNumTypes); }},
      {{"--op", "avg"}, [](const Options& o) { return o.ops == Ops{trestleAvg}; }},
      {{"-o", "all"}, [](const Options& o) { return o.ops.size() == kOps && o.ops.back() == kMulSum; }},
      {{"-r", "all"}, [](const Options& o) { return o.root == -1; }},
      {{"-P", "4", "-t", "2", "-g", "3"},
       [](const Options& o) { return o.processes == 4 && o.threads == 2 && o.ranks_per_thread == 3; }},
      {{"-P", "8", "-b", "8", "-P", "0"}, [](const Options& o) { return o.processes == 0; }},
      {{"-z", "3"}, [](const Options& o) { return o.blocking == 3; }},
      {{"-a", "0"}, [](const Options& o) { return o.average == 0; }},
      {{"-C", "1"}, [](const Options& o) { return o.report_cpu_time; }},
      {{"-G", "3"}, [](const Options& o) { return o.graph_launches == 3; }},
      {{"-I", "1", "-K", "3"}, [](const Options& o) { return o.per_iteration && o.skipped_iterations == 3; }},
      {{"-J", "out.JSON"}, [](const Options& o) { return o.json_path == "out.JSON"; }},
      {{"--rail_stats", "2"}, [](const Options& o) { return o.rail_stats == 2; }},
      {{"--predict", "8K,1M"},
       [](const Options& o) {
         return o.predict_bytes == std::vector<size_t>{8192, 1 << 20};
       }},
      {{"--bind", "none"}, [](const Options& o) { return !o.bind; }},
      {{"--backend", "nccl", "--nccl-library", "x/l.so"},
       [](const Options& o) { return o.compare_nccl && o.nccl_library == "x/l.so"; }},
      {{"--backend", "nccl", "--backend=trestle"}, [](const Options& o) { return !o.compare_nccl; }},
      {{"--location", "device"}, [](const Options& o) { return o.location == Location::kDevice; }},
      {{"--location", "host"}, [](const Options& o) { return o.location == Location::kHost; }},
      {{"--call-times", "1"}, [](const Options& o) { return o.call_times; }},
      // These do nothing on host memory, and say so.
      {{"-G", "1", "-x", "0", "-M", "1", "-D", "2", "-V", "16"},
       [](const Options& o) { return o.remarks.size() == 3 && o.remarks[1].starts_with("-D"); }},
  };
  for (size_t i = 0; i < std::size(kCases); ++i) {
    const ParsedOptions parsed = parse(kCases[i].words);
    EXPECT_EQ(parsed.error, "") << i;
    EXPECT_TRUE(kCases[i].holds(parsed.options)) << "row " << i;
  }
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
      {{"-b", "1X"}, "-b: '1X' is not a number of bytes"},
      {{"-b", "64M"}, "is more than -e"},
      {{"-d", "int7"}, "-d: 'int7' is not a type; did you mean int8? There are int8, uint8, int32"},
      {{"-o", "sumsum"},
       "-o: 'sumsum' is not an operator; did you mean mulsum? There are sum, prod, max, min, avg, mulsum, all"},
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
      {{"--backend", "gloo"}, "'gloo'"},
      {{"--location", "disk"}, "auto, host or device, not 'disk'"},
      {{"--call-times", "2"}, "0 or 1, not '2'"},
      {{"--backend", "nccl", "--nccl-library", ""}, "takes the file"},
      {{"--nccl-library", "x"}, "--backend nccl"},
  };
  for (const auto& c : kCases) {
    EXPECT_NE(parse(c.words).error.find(c.part), std::string::npos) << c.words[0] << ": " << parse(c.words).error;
  }
}

TEST(PerfOptions, HaveTheLettersOfNcclTests) {
  const std::string usage = usage_text("all_reduce_perf");
  for (const char flag : std::string("tgbeifnwmNpcodrzyTGCSJaRxDVMuIKhPX"))
    EXPECT_NE(usage.find(std::string("\n  -") + flag + ", --"), std::string::npos) << flag;
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
