// Simulated jobs that tests share: topologies, inputs whose sums round, and the expected results.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/rng.h"
#include "sched/select/select.h"
#include "sim/cluster.h"
#include "tests/unit/engine/grids.h"

namespace trestle {

inline Topology grid(const std::vector<int32_t>& sizes) {
  return engine_grid(sizes);
}

inline SimOptions options_for(const Topology& topology, uint64_t seed, uint64_t jitter_ns) {
  SimOptions options;
  for (const Dimension& d : topology.dimensions) options.links.push_back({d.latency_ns, d.bandwidth_mbps});
  options.faults = {seed, jitter_ns};
  options.segment_bytes = 4096;
  options.check_plans = true;
  return options;
}

inline Schedule schedule_for(Collective collective, uint64_t bytes, const Topology& topology, uint32_t chunks,
                             const char* algo = "") {
  SelectionConfig config;
  config.chunks = chunks;
  config.algo = algo;
  SelectionRequest request;
  request.collective = collective;
  request.bytes = bytes;
  request.element_bytes = 4;
  auto schedule = select_schedule(request, topology, config);
  EXPECT_TRUE(schedule.ok()) << (schedule.ok() ? "" : schedule.error().message);
  return std::move(schedule).value();
}

// Values whose sums round, so that another order of summation changes the bits.
inline std::vector<std::vector<float>> rounding_inputs(int32_t ranks, size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<float>> inputs(ranks, std::vector<float>(count));
  for (auto& input : inputs) {
    for (float& value : input) value = static_cast<float>(rng.uniform() * 1e3 - 5e2);
  }
  return inputs;
}

struct Job {
  SimCall call;
  std::vector<std::vector<float>> send, recv;
};

inline Job all_reduce_job(const Topology& topology, size_t count, uint32_t chunks, const char* algo = "") {
  Job job;
  job.send = rounding_inputs(topology.ranks(), count, 7);
  job.recv.assign(topology.ranks(), std::vector<float>(count));
  job.call.request.collective = Collective::kAllReduce;
  job.call.request.count = count;
  job.call.schedule = schedule_for(Collective::kAllReduce, count * 4, topology, chunks, algo);
  for (int32_t r = 0; r < topology.ranks(); ++r) job.call.buffers.push_back({job.send[r].data(), job.recv[r].data()});
  return job;
}

inline void expect_sums(const Job& job) {
  for (size_t i = 0; i < job.send[0].size(); ++i) {
    double sum = 0;
    for (const auto& input : job.send) sum += input[i];
    for (const auto& output : job.recv) ASSERT_NEAR(output[i], sum, 1e-1) << "element " << i;
  }
  for (const auto& output : job.recv) {
    ASSERT_EQ(0, std::memcmp(output.data(), job.recv[0].data(), output.size() * 4)) << "ranks disagree in bits";
  }
}

}  // namespace trestle
