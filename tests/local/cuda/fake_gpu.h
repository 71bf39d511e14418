// A GPU for tests of the public API: the fake driver (unit/device/fake_driver.h) in place of libcuda.so.1, and what a
// program does with it beside the library. Each case runs in a process of its own, which has its own fake driver.
#pragma once

#include <gtest/gtest.h>
#include <trestle/cuda.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "device/device.h"
#include "support/ranks.h"
#include "unit/device/fake_driver.h"

namespace fake_gpu {

using ranks::refused;
using ranks::succeeded;
using trestle::FakeDriver;
using trestle::StreamHandle;

// The one that the library and the test share.
FakeDriver& driver();

// The program's own use of the driver. Its streams do what was submitted to them on a thread of the driver.
class Gpu {
 public:
  Gpu();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  trestle::Device& device(int index = 0) { return *opened_[index]; }
  StreamHandle* make_stream(int index = 0);
  // Pinned memory of `count` numbers, each `value`.
  float* pinned(size_t count, float value);
  void copy(float* dst, const float* src, size_t count, StreamHandle* stream, int index = 0);
  // Waits until everything is done that was submitted to it.
  void await_idle(StreamHandle* stream, int index = 0);

 private:
  std::unique_ptr<trestle::Devices> devices_;
  std::unique_ptr<trestle::Device> opened_[2];
};

trestleStream_t wrapped(StreamHandle* stream);
// All ranks in this process, each on the device of that number; -1: on none.
std::vector<trestleComm_t> communicators(const std::vector<int>& devices);
void destroy(const std::vector<trestleComm_t>& comms);
trestleResult_t all_reduce(float* buffer, size_t count, trestleComm_t comm, trestleStream_t stream);

// As trestleCommGetRailStats() has them.
std::vector<trestleRailStats_t> rails_of(trestleComm_t comm);

// Runs the body in a process of its own, once where streams wait for words and once where the driver has none.
void both_ways(const std::function<void(Gpu&)>& body);

}  // namespace fake_gpu
