#include "support/device_memory.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "device/device.h"
#include "unit/device/fake_driver.h"

namespace device_memory {
namespace {

template <class Result>
auto must(Result result, const char* what) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s: %s\n", what, result.error().message.c_str());
    std::abort();
  }
  if constexpr (!std::is_same_v<Result, trestle::Status>) return std::move(result).value();
}

// The streams of the fake driver do what was submitted on a thread of the driver, as those of a device do.
void let_streams_run() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return;
  using Fake = trestle::FakeDriver* (*)();
  if (const auto fake = reinterpret_cast<Fake>(dlsym(driver, "fake_driver"))) fake()->run_streams(true);
}

struct Used {
  std::unique_ptr<trestle::Devices> devices = must(trestle::open_devices(), "the driver");
  std::unique_ptr<trestle::Device> device =
      must(devices->open(std::atoi(std::getenv("TRESTLE_DEVICE"))), "TRESTLE_DEVICE");
  trestle::StreamHandle* stream = must(device->make_stream(false), "a stream");
  Used() { let_streams_run(); }
};

// Not destroyed: the driver's threads may outlive this.
Used& used() {
  static Used* const one = new Used;
  return *one;
}

}  // namespace

bool is_wanted() {
  return std::getenv("TRESTLE_DEVICE") != nullptr;
}

std::byte* allocate(size_t bytes) {
  return must(used().device->allocate(bytes), "memory of the device");
}

void free(std::byte* memory) {
  must(used().device->free(memory), "freeing memory of the device");
}

void copy(std::byte* to, const std::byte* from, size_t bytes) {
  must(used().device->copy(to, from, bytes, used().stream), "a copy");
  must(used().device->synchronize(used().stream), "a copy");
}

}  // namespace device_memory
