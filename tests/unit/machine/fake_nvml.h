// A library in place of libnvidia-ml.so.1 (fake_nvml.cpp is a shared library of its own). Tests say which GPUs it has
// and which calls fail, through the state that fake_nvml() hands out. At first there are two GPUs with four NVLinks
// between them. One thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trestle {

struct FakeNvlink {
  int remote = 0;           // a GPU; 2: a switch
  unsigned remote_bus = 0;  // its PCI bus, in domain 0
  bool up = true;
  int answer = 0;  // to a question about its state
};

struct FakeNvmlGpu {
  unsigned domain = 0;
  unsigned bus = 0;
  std::string name = "NVIDIA Fake";
  std::string uuid = {};
  unsigned long long memory = 0;
  std::vector<FakeNvlink> links = {};
  unsigned common_mbps = 0;  // 10^6 byte/s; 0: the field is not supported
  unsigned link_mbps = 0;
};

struct FakeNvmlState {
  std::vector<FakeNvmlGpu> gpus;
  std::map<std::string, int> answers = {};              // of functions that fail
  std::map<std::pair<size_t, size_t>, int> peers = {};  // what it says of pairs; others are all right
  unsigned more = 0;                                    // that it counts too many
  int open = 0;                                         // inits without a shutdown
};

inline FakeNvmlState two_linked_gpus() {
  FakeNvmlState state;
  for (const unsigned bus : {0xf0u, 0xf1u}) {
    FakeNvmlGpu gpu{.bus = bus, .common_mbps = 25'000};
    gpu.uuid = bus == 0xf0 ? "GPU-0123abcd-0000" : "GPU-4567abcd-0000";
    gpu.memory = 80ull << 30;
    gpu.links.resize(4, {.remote_bus = bus ^ 1});
    state.gpus.push_back(gpu);
  }
  return state;
}

// What the library has under the name "fake_nvml".
using FakeNvml = FakeNvmlState* (*)();

}  // namespace trestle
