// CudaDevices, CudaDevice: device.h over the table of the driver. Internal to src/device. Threads: see device.h; a
// device has no state that changes.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "device/driver.h"

namespace trestle {

class CudaDevices : public Devices {
 public:
  static Result<std::unique_ptr<Devices>> create(const char* driver_library);

  int count() const override { return count_; }
  Result<std::unique_ptr<Device>> open(int index) override;
  Result<PointerInfo> look_at(const void* pointer) override;
  Result<int> device_of(StreamHandle* stream) override;
  int driver_version() const override { return driver_.version; }

 private:
  CudaDevices(const Driver& driver, int count) : driver_(driver), count_(count) {}
  Result<CUcontext> context_of(StreamHandle* stream) const;
  Result<CUdevice> device_of(CUcontext context) const;
  const Driver driver_;
  const int count_;
};

class CudaDevice : public Device {
 public:
  // Takes over the reference to the primary context.
  CudaDevice(const Driver& driver, CUdevice device, CUcontext context)
      : driver_(driver), device_(device), context_(context) {}
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override;
  // Once, before anything else: info(), and what the device can do.
  Status learn(int index);

  const DeviceInfo& info() const override { return info_; }
  Status enter() override;
  Status leave() override;
  Result<std::byte*> allocate(uint64_t bytes) override;
  Status free(std::byte* memory) override;
  Result<std::byte*> allocate_pinned(uint64_t bytes) override;
  Status free_pinned(std::byte* memory) override;
  Status pin(std::byte* memory, uint64_t bytes) override;
  Status unpin(std::byte* memory) override;
  Result<MemoryTicket> share(const std::byte* memory) override;
  Result<std::byte*> open(const MemoryTicket& ticket) override;
  Status close(std::byte* opened) override;
  bool maps_descriptors() const override { return maps_descriptors_; }
  Result<DescribedMemory> allocate_described(uint64_t bytes) override;
  Result<std::byte*> map_described(int descriptor, uint64_t bytes) override;
  Status unmap_described(std::byte* memory, uint64_t bytes) override;
  Result<bool> can_reach(const Device& other) override;
  Result<bool> joined_by_nvlink(const std::string& pci) override;
  Status reach(const Device& other) override;

  Result<StreamHandle*> make_stream(bool urgent) override;
  Status destroy_stream(StreamHandle* stream) override;
  Status check_stream(StreamHandle* stream) override;
  Result<bool> is_capturing(StreamHandle* stream) override;
  Result<uint64_t> capture_id(StreamHandle* captured) override;
  Status call_when_graph_ends(StreamHandle* captured, void (*function)(void*), void* argument) override;
  Status begin_capture(StreamHandle* stream) override;
  Result<GraphHandle*> end_capture(StreamHandle* stream) override;
  Status launch(GraphHandle* graph, StreamHandle* stream) override;
  Status destroy_graph(GraphHandle* graph) override;
  Result<bool> is_idle(StreamHandle* stream) override;
  Status synchronize(StreamHandle* stream) override;
  Result<EventHandle*> make_event(bool timed, bool shared) override;
  Status destroy_event(EventHandle* event) override;
  Status record(EventHandle* event, StreamHandle* stream) override;
  Status wait_for_event(StreamHandle* stream, EventHandle* event) override;
  Result<bool> is_done(EventHandle* event) override;
  Result<float> elapsed_ms(EventHandle* first, EventHandle* second) override;
  Result<EventTicket> share_event(EventHandle* event) override;
  Result<EventHandle*> open_event(const EventTicket& ticket) override;
  bool supports_word_waits() const override { return word_waits_; }
  Status wait_for_word(StreamHandle* stream, const uint32_t* word, uint32_t value) override;
  Status write_word(StreamHandle* stream, uint32_t* word, uint32_t value) override;
  Status call_host(StreamHandle* stream, void (*function)(void*), void* argument) override;

  Status copy(std::byte* dst, const std::byte* src, uint64_t bytes, StreamHandle* stream) override;
  Status fill(std::byte* dst, std::byte value, uint64_t bytes, StreamHandle* stream) override;
  Status launch(KernelHandle* kernel, LaunchShape shape, std::span<void* const> arguments,
                StreamHandle* stream) override;
  Result<ModuleHandle*> load(const std::byte* image) override;
  Status unload(ModuleHandle* code) override;
  Result<KernelHandle*> find_kernel(ModuleHandle* code, const char* name) override;
  Result<uint32_t> resident_blocks(KernelHandle* kernel, uint32_t threads) override;

 private:
  struct Capture {
    CUgraph graph;
    cuuint64_t id;
  };
  Result<Capture> capture_of(StreamHandle* stream);
  // Makes the context current for one call of a function of the driver and returns its answer. `name`: its name. While
  // any thread captures a graph, the driver refuses other threads' calls that allocate or ask, and ends the capture.
  // The library's own calls belong to no graph; the relaxed mode tells the driver so for this one call.
  template <class Function, class... Arguments>
  CUresult call(Function function, Arguments... arguments) const;
  template <class Function, class... Arguments>
  Status call_checked(const char* name, Function function, Arguments... arguments) const;
  // For functions that answer "not ready": whether it is.
  template <class Function, class... Arguments>
  Result<bool> ask(const char* name, Function function, Arguments... arguments) const;
  Status has_one_address(std::byte* memory);
  // How memory that others map by a descriptor is made.
  CUmemAllocationProp described() const;
  bool can_map_descriptors() const;
  // Maps the memory for these devices, and lets go of the handle, also after an error.
  Result<std::byte*> map(CUmemGenericAllocationHandle handle, uint64_t bytes, const std::vector<CUdevice>& users);
  Status let_use(CUdeviceptr memory, uint64_t bytes, const std::vector<CUdevice>& users) const;
  // This device and all that reach it.
  Result<std::vector<CUdevice>> possible_users() const;
  Result<uint64_t> memory_mbps();
  Result<bool> try_word_waits();
  // Submits a write and a wait for it. `submitted`: both were, which is false if the driver does not have them.
  Status try_word(StreamHandle* stream, uint32_t* word, bool& submitted);

  const Driver& driver_;
  const CUdevice device_;
  const CUcontext context_;
  bool word_waits_ = false;
  bool maps_descriptors_ = false;
  DeviceInfo info_;
};

template <class Function, class... Arguments>
CUresult CudaDevice::call(Function function, Arguments... arguments) const {
  if (const CUresult pushed = driver_.cuCtxPushCurrent(context_); pushed != CUDA_SUCCESS) return pushed;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver_.cuThreadExchangeStreamCaptureMode(&mode);
  const CUresult result = function(arguments...);
  driver_.cuThreadExchangeStreamCaptureMode(&mode);
  // This fails only if the driver has ended, which the next call finds.
  CUcontext popped = nullptr;
  driver_.cuCtxPopCurrent(&popped);
  return result;
}

template <class Function, class... Arguments>
Status CudaDevice::call_checked(const char* name, Function function, Arguments... arguments) const {
  return driver_.check(call(function, arguments...), name);
}

template <class Function, class... Arguments>
Result<bool> CudaDevice::ask(const char* name, Function function, Arguments... arguments) const {
  const CUresult result = call(function, arguments...);
  if (result == CUDA_ERROR_NOT_READY) return false;
  TRY(driver_.check(result, name));
  return true;
}

// The handles of device.h are the driver's.
inline CUstream raw(StreamHandle* stream) {
  return reinterpret_cast<CUstream>(stream);
}
inline CUevent raw(EventHandle* event) {
  return reinterpret_cast<CUevent>(event);
}
inline CUgraphExec raw(GraphHandle* graph) {
  return reinterpret_cast<CUgraphExec>(graph);
}
inline CUdeviceptr raw(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

}  // namespace trestle

// A call of a function of the driver's by its name, in the context of this device.
#define DRIVER_CALL(name, ...) call_checked(#name, driver_.name __VA_OPT__(, ) __VA_ARGS__)
