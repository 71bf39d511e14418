// device_perf: bandwidth of the kernels for GPUs beside a copy by the driver, on the first GPU. Bandwidths count every
// byte that is read and written. Usage: device_perf [MEBIBYTES ...]; without sizes 64 and 256.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "device/kernels.h"

using namespace trestle;

namespace {

constexpr size_t kMostSources = 8;
constexpr int kLaunches = 20;  // per timed stretch
constexpr int kStretches = 5;

class Bench {
 public:
  Status begin(uint64_t most_bytes) {
    devices_ = TRY(open_devices());
    device_ = TRY(devices_->open(0));
    kernels_ = TRY(DeviceKernels::create(*device_));
    stream_ = TRY(device_->make_stream(false));
    first_ = TRY(device_->make_event(true, false));
    second_ = TRY(device_->make_event(true, false));
    for (std::byte*& buffer : buffers_) {
      buffer = TRY(device_->allocate(most_bytes));
      TRY(device_->fill(buffer, std::byte{0x3c}, most_bytes, stream_));
    }
    std::printf("# %s, %d multiprocessors, driver %d\n", device_->info().name.c_str(), device_->info().multiprocessors,
                devices_->driver_version());
    return device_->synchronize(stream_);
  }

  Status rows_of(uint64_t bytes) {
    const double copied = TRY(bandwidth(2 * bytes, [&] { return device_->copy(result(), source(0), bytes, stream_); }));
    row(bytes, "copy", "driver", 1, copied, copied);
    row(bytes, "copy", "kernel", 1,
        TRY(bandwidth(2 * bytes,
                      [&] { return kernels_->copy_rows(result(), bytes, source(0), bytes, bytes, 1, stream_); })),
        copied);
    for (size_t t = 0; t < kDataTypes; ++t) {
      for (const size_t sources : {2, 4, 8}) TRY(reduction(bytes, static_cast<DataType>(t), sources, copied));
    }
    return {};
  }

 private:
  std::byte* source(size_t which) { return buffers_[which]; }
  std::byte* result() { return buffers_[kMostSources]; }

  Status reduction(uint64_t bytes, DataType type, size_t sources, double copied) {
    const std::vector<const std::byte*> list(buffers_.begin(), buffers_.begin() + static_cast<std::ptrdiff_t>(sources));
    const double reduced = TRY(bandwidth((sources + 1) * bytes, [&] {
      return kernels_->reduce(result(), list, bytes / size_of(type), {type, ReduceOp::kSum, 0, false}, stream_);
    }));
    row(bytes, "sum", to_string(type), sources, reduced, copied);
    return {};
  }

  // GB/s, the median of several stretches.
  Result<double> bandwidth(uint64_t bytes, const std::function<Status()>& launch) {
    TRY(launch());
    std::array<double, kStretches> times;
    for (double& time : times) {
      TRY(device_->record(first_, stream_));
      for (int i = 0; i < kLaunches; ++i) TRY(launch());
      TRY(device_->record(second_, stream_));
      TRY(device_->synchronize(stream_));
      time = static_cast<double>(TRY(device_->elapsed_ms(first_, second_))) / kLaunches;
    }
    std::nth_element(times.begin(), times.begin() + kStretches / 2, times.end());
    return static_cast<double>(bytes) / times[kStretches / 2] / 1e6;
  }

  static void row(uint64_t bytes, const char* what, const char* type, size_t sources, double speed, double copied) {
    std::printf("%8llu MiB  %-5s %-9s %zu sources %8.0f GB/s  %5.3f of the driver's copy\n",
                static_cast<unsigned long long>(bytes >> 20), what, type, sources, speed, speed / copied);
    std::fflush(stdout);
  }

  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceKernels> kernels_;
  StreamHandle* stream_ = nullptr;
  EventHandle* first_ = nullptr;
  EventHandle* second_ = nullptr;
  std::array<std::byte*, kMostSources + 1> buffers_{};
};

Status run(const std::vector<uint64_t>& sizes) {
  Bench bench;
  TRY(bench.begin(*std::max_element(sizes.begin(), sizes.end())));
  for (const uint64_t bytes : sizes) TRY(bench.rows_of(bytes));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<uint64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const long mebibytes = std::atol(argv[i]);
    if (mebibytes <= 0) {
      std::fprintf(stderr, "Usage: device_perf [MEBIBYTES ...]\n");
      return 2;
    }
    sizes.push_back(static_cast<uint64_t>(mebibytes) << 20);
  }
  if (sizes.empty()) sizes = {64ULL << 20, 256ULL << 20};
  if (const auto devices = open_devices(); !devices.ok()) {
    std::printf("skipped: %s\n", devices.error().message.c_str());
    return 0;
  }
  const Status done = run(sizes);
  if (done.ok()) return 0;
  std::fprintf(stderr, "device_perf: %s\n", done.error().message.c_str());
  return 1;
}
