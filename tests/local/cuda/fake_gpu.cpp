#include "local/cuda/fake_gpu.h"

#include <algorithm>

extern "C" trestle::FakeDriver* fake_driver();

namespace fake_gpu {

FakeDriver& driver() {
  return *fake_driver();
}

Gpu::Gpu() {
  driver().run_streams(true);
  auto devices = trestle::open_devices();
  if (!devices.ok()) {
    ADD_FAILURE() << devices.error().message;
    return;
  }
  devices_ = std::move(devices).value();
  for (int i = 0; i < 2; ++i) opened_[i] = devices_->open(i).value();
}

Gpu::~Gpu() {
  driver().run_streams(false);
  EXPECT_EQ(driver().misuse(), "");
}

StreamHandle* Gpu::make_stream(int index) {
  return device(index).make_stream(false).value();
}

float* Gpu::pinned(size_t count, float value) {
  auto* const memory = reinterpret_cast<float*>(device().allocate_pinned(count * sizeof(float)).value());
  std::fill_n(memory, count, value);
  return memory;
}

void Gpu::copy(float* dst, const float* src, size_t count, StreamHandle* stream, int index) {
  const auto copied = device(index).copy(reinterpret_cast<std::byte*>(dst), reinterpret_cast<const std::byte*>(src),
                                         count * sizeof(float), stream);
  EXPECT_TRUE(copied.ok());
}

void Gpu::await_idle(StreamHandle* stream, int index) {
  ranks::wait_until([&] {
    const auto idle = device(index).is_idle(stream);
    return !idle.ok() || idle.value();
  });
}

trestleStream_t wrapped(StreamHandle* stream) {
  trestleStream_t made = nullptr;
  EXPECT_TRUE(succeeded(trestleStreamWrapCuda(&made, stream)));
  return made;
}

std::vector<trestleComm_t> communicators(const std::vector<int>& devices) {
  std::vector<trestleComm_t> comms(devices.size());
  EXPECT_TRUE(succeeded(trestleCommInitAll(comms.data(), static_cast<int>(devices.size()), devices.data())));
  return comms;
}

void destroy(const std::vector<trestleComm_t>& comms) {
  for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
}

trestleResult_t all_reduce(float* buffer, size_t count, trestleComm_t comm, trestleStream_t stream) {
  return trestleAllReduce(buffer, buffer, count, trestleFloat32, trestleSum, comm, stream);
}

std::vector<trestleRailStats_t> rails_of(trestleComm_t comm) {
  trestleCommRailStats_t stats = TRESTLE_RAIL_STATS_INITIALIZER;
  EXPECT_TRUE(succeeded(trestleCommGetRailStats(comm, &stats), comm));
  std::vector<trestleRailStats_t> rows(static_cast<size_t>(stats.count));
  stats.rows = rows.data();
  stats.capacity = stats.count;
  EXPECT_TRUE(succeeded(trestleCommGetRailStats(comm, &stats), comm));
  return rows;
}

void both_ways(const std::function<void(Gpu&)>& body) {
  for (const bool words : {true, false}) {
    SCOPED_TRACE(words ? "streams wait for words" : "the driver has no words in streams");
    ranks::isolated([&] {
      driver().set_word_waits(words);
      Gpu gpu;
      body(gpu);
    });
  }
}

}  // namespace fake_gpu
