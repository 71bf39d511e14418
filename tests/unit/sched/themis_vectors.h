// Reads themis_vectors.txt: worked examples of Themis in its model. Test support. Throws nothing; errors fail the test.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "study/paper.h"

namespace trestle {

struct VectorRun {      // the result of one policy
  std::string time_ns;  // exact, a fraction
  double utilization = 0;
  std::vector<double> loads_ns;
  std::vector<double> bytes;
  bool tie_free = false;
  std::vector<std::vector<PhaseId>> orders;  // per dimension
};

struct VectorCase {
  std::string name;
  PaperCase input;  // policy and intra have their defaults
  double ideal_ns = 0;
  std::vector<double> latencies_ns;
  std::map<std::string, VectorRun> runs;     // baseline, themis_fifo, themis_scf
  std::vector<std::vector<uint8_t>> chunks;  // 0-based dimensions
  std::vector<bool> fallback;
  double fluid_bound_ns = 0;  // 0: not given
  double lp_split_ns = 0;
};

class VectorReader {
 public:
  explicit VectorReader(const std::string& path) : file_(path) {
    EXPECT_TRUE(file_.good()) << path;
    for (std::string line; std::getline(file_, line);) {
      if (!line.starts_with('#')) text_ << line << ' ';
    }
    text_ >> word_;
  }

  std::vector<VectorCase> read() {
    std::vector<VectorCase> cases;
    while (word_ == "case") cases.push_back(one());
    EXPECT_EQ(word_, "end");
    return cases;
  }

 private:
  template <class T>
  T next() {
    T value{};
    EXPECT_TRUE(text_ >> value) << "after " << word_;
    return value;
  }
  void next_word() { text_ >> word_; }
  std::vector<double> numbers(size_t count) {
    std::vector<double> list(count);
    for (double& each : list) each = next<double>();
    return list;
  }

  Dimension dimension() {
    Dimension dimension;
    dimension.size = next<int32_t>();
    const auto kind = next<std::string>();
    for (const DimensionKind known : {DimensionKind::kRing, DimensionKind::kFullyConnected, DimensionKind::kSwitch}) {
      if (kind == to_string(known)) dimension.kind = known;
    }
    dimension.bandwidth_mbps = next<uint64_t>();
    dimension.latency_ns = next<uint64_t>();
    return dimension;
  }

  VectorRun run(size_t dimensions) {
    VectorRun run;
    run.time_ns = next<std::string>();
    run.utilization = next<double>();
    next_word();
    EXPECT_EQ(word_, "loads_ns");
    run.loads_ns = numbers(dimensions);
    next_word();
    EXPECT_EQ(word_, "bytes");
    run.bytes = numbers(dimensions);
    next_word();
    EXPECT_EQ(word_, "tie_free");
    run.tie_free = next<int>() != 0;
    for (size_t d = 0; d < dimensions; ++d) {
      next_word();
      EXPECT_EQ(word_, "order");
      auto& order = run.orders.emplace_back(next<size_t>());
      for (PhaseId& id : order) {
        id.chunk = next<uint32_t>();
        EXPECT_EQ(next<char>(), '.');
        id.stage = next<uint32_t>();
      }
    }
    next_word();
    return run;
  }

  VectorCase one() {
    VectorCase result;
    result.name = next<std::string>();
    const auto collective = next<std::string>();
    result.input.collective = collective == "AR"   ? Collective::kAllReduce
                              : collective == "RS" ? Collective::kReduceScatter
                                                   : Collective::kAllGather;
    result.input.chunks = next<uint32_t>();
    result.input.bytes = next<uint64_t>();
    next_word();
    EXPECT_EQ(word_, "dims");
    const auto dimensions = next<size_t>();
    for (size_t d = 0; d < dimensions; ++d) result.input.topology.dimensions.push_back(dimension());
    next_word();
    EXPECT_EQ(word_, "ideal_ns");
    result.ideal_ns = next<double>();
    next_word();
    EXPECT_EQ(word_, "latencies_ns");
    result.latencies_ns = numbers(dimensions);
    next_word();
    while (word_ == "policy") {
      const auto policy = next<std::string>();
      result.runs[policy] = run(dimensions);
    }
    while (word_ == "chunk") {
      auto& chunk = result.chunks.emplace_back(dimensions);
      for (uint8_t& each : chunk) each = static_cast<uint8_t>(next<int>() - 1);
      result.fallback.push_back(next<int>() != 0);
      next_word();
    }
    EXPECT_EQ(word_, "bounds");
    result.fluid_bound_ns = next<double>();
    result.lp_split_ns = next<double>();
    next_word();
    return result;
  }

  std::ifstream file_;
  std::stringstream text_;
  std::string word_;
};

inline std::vector<VectorCase> themis_vectors() {
  return VectorReader(std::string(TRESTLE_SOURCE_DIR) + "/tests/unit/sched/themis_vectors.txt").read();
}

}  // namespace trestle
