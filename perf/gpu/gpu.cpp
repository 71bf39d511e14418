#include "perf/gpu/gpu.h"

#include "device/device.h"
#include "perf/driver/ending.h"

namespace trestle::perf {
namespace {

void require_device(const Status& status, Place where = {__builtin_FILE(), __builtin_LINE()}) {
  if (!status.ok()) fail(kExitDevice, status.error().message, where);
}

template <class Value>
Value require_device(Result<Value> result, Place where = {__builtin_FILE(), __builtin_LINE()}) {
  if (!result.ok()) fail(kExitDevice, result.error().message, where);
  return std::move(result).value();
}

std::byte* raw(char* memory) {
  return reinterpret_cast<std::byte*>(memory);
}

// Copies on a stream of its own, so that it waits for nobody else's work.
class GpuAccess : public Access {
 public:
  explicit GpuAccess(Device& device) : device_(device), stream_(require_device(device.make_stream(false))) {}
  ~GpuAccess() override { require_device(device_.destroy_stream(stream_)); }

  bool is_direct() const override { return false; }
  void zero(char* at, size_t bytes) override {
    if (bytes > 0) finish(device_.fill(raw(at), std::byte{0}, bytes, stream_));
  }
  void write(char* to, const void* from, size_t bytes) override {
    if (bytes > 0) finish(device_.copy(raw(to), static_cast<const std::byte*>(from), bytes, stream_));
  }
  void read(void* to, const char* from, size_t bytes) override {
    if (bytes > 0)
      finish(device_.copy(static_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), bytes, stream_));
  }

 private:
  void finish(const Status& submitted) {
    require_device(submitted);
    require_device(device_.synchronize(stream_));
  }

  Device& device_;
  StreamHandle* const stream_;
};

class OpenGpu : public Gpu {
 public:
  explicit OpenGpu(std::unique_ptr<Device> device) : device_(std::move(device)) {
    const DeviceInfo& info = device_->info();
    info_ = {info.index, info.name, info.pci, info.bytes, info.compute_capability};
  }
  const GpuInfo& info() const override { return info_; }
  Source memory() override {
    return {[this](size_t bytes) { return reinterpret_cast<char*>(require_device(device_->allocate(bytes))); },
            [this](char* memory, size_t) { require_device(device_->free(raw(memory))); }};
  }
  std::unique_ptr<Access> make_access() override { return std::make_unique<GpuAccess>(*device_); }
  void* make_stream() override { return require_device(device_->make_stream(false)); }
  void destroy_stream(void* stream) override { require_device(device_->destroy_stream(handle(stream))); }
  bool is_idle(void* stream) override { return require_device(device_->is_idle(handle(stream))); }
  void begin_capture(void* stream) override { require_device(device_->begin_capture(handle(stream))); }
  void* end_capture(void* stream) override { return require_device(device_->end_capture(handle(stream))); }
  void launch(void* graph, void* stream) override {
    require_device(device_->launch(static_cast<GraphHandle*>(graph), handle(stream)));
  }
  void destroy_graph(void* graph) override { require_device(device_->destroy_graph(static_cast<GraphHandle*>(graph))); }
  void enter() override { require_device(device_->enter()); }
  void leave() override { require_device(device_->leave()); }

 private:
  static StreamHandle* handle(void* stream) { return static_cast<StreamHandle*>(stream); }

  const std::unique_ptr<Device> device_;
  GpuInfo info_;
};

class OpenGpus : public Gpus {
 public:
  explicit OpenGpus(std::unique_ptr<Devices> devices) : devices_(std::move(devices)) {}
  int count() const override { return devices_->count(); }
  std::unique_ptr<Gpu> open(int index) override {
    return std::make_unique<OpenGpu>(require_device(devices_->open(index)));
  }

 private:
  const std::unique_ptr<Devices> devices_;
};

}  // namespace

FoundGpus find_gpus(const std::string& driver_library) {
  Result<std::unique_ptr<Devices>> devices =
      open_devices(driver_library.empty() ? kDriverLibrary : driver_library.c_str());
  if (!devices.ok()) return {nullptr, devices.error().message};
  return {std::make_unique<OpenGpus>(std::move(devices).value()), ""};
}

}  // namespace trestle::perf
