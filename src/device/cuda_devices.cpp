// Finding devices, and what is known of each.
#include <algorithm>
#include <array>

#include "device/cuda_device.h"

namespace trestle {

namespace {

constexpr uint32_t kTriedValue = 7;  // of the word that is written and waited for

}  // namespace

Result<std::unique_ptr<Devices>> open_devices(const char* driver_library) {
  return CudaDevices::create(driver_library);
}

Result<std::unique_ptr<Devices>> CudaDevices::create(const char* driver_library) {
  const Driver driver = TRY(load_driver(driver_library));
  int count = 0;
  if (const CUresult started = driver.cuInit(0); started != CUDA_SUCCESS) {
    return Error{Code::kInvalidUsage, "there is no usable GPU: " + driver.failed(started, "cuInit").message};
  }
  TRY(driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (count == 0) return Error{Code::kInvalidUsage, "the driver of NVIDIA's finds no GPU on this host"};
  return std::unique_ptr<Devices>(new CudaDevices(driver, count));
}

Result<std::unique_ptr<Device>> CudaDevices::open(int index) {
  if (index < 0 || index >= count_) {
    return Error{Code::kInvalidArgument, "there is no device " + std::to_string(index) + ": this process sees " +
                                             std::to_string(count_) + ", counted from 0"};
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  TRY(driver_.check(driver_.cuDeviceGet(&device, index), "cuDeviceGet"));
  TRY(driver_.check(driver_.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"));
  auto opened = std::make_unique<CudaDevice>(driver_, device, context);
  TRY(opened->learn(index));
  return std::unique_ptr<Device>(std::move(opened));
}

Result<PointerInfo> CudaDevices::look_at(const void* pointer) {
  // Memory that the driver does not know is no error: every answer stays 0.
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = -1;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  unsigned plain = 0;  // a plain allocation: only such memory can be shared by a handle, or read by peer access
  std::array<CUpointer_attribute, 6> questions = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
      CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
  std::array<void*, 6> answers = {&type, &managed, &ordinal, &base, &bytes, &plain};
  TRY(driver_.check(driver_.cuPointerGetAttributes(questions.size(), questions.data(), answers.data(), raw(pointer)),
                    "cuPointerGetAttributes"));
  if (type == 0) return PointerInfo{};
  PointerInfo info;
  info.device = ordinal;
  if (managed != 0) {
    info.kind = PointerKind::kManaged;
  } else if (type == CU_MEMORYTYPE_HOST) {
    info.kind = PointerKind::kPinnedHost;
  } else {
    info.kind = PointerKind::kDevice;
    info.open_to_devices = plain != 0;
    info.base = reinterpret_cast<std::byte*>(base);
    info.bytes = bytes;
  }
  return info;
}

Result<CUcontext> CudaDevices::context_of(StreamHandle* stream) const {
  CUcontext context = nullptr;
  // The handles of default streams are numbers, which the driver reads in the thread's context.
  const bool is_default = raw(stream) == nullptr || raw(stream) == CU_STREAM_LEGACY || stream == per_thread_stream();
  if (!is_default) {
    TRY(driver_.check(driver_.cuStreamGetCtx(raw(stream), &context), "cuStreamGetCtx"));
    return context;
  }
  TRY(driver_.check(driver_.cuCtxGetCurrent(&context), "cuCtxGetCurrent"));
  if (context != nullptr) return context;
  return Error{Code::kInvalidUsage,
               "a default stream is that of the thread's current device, and this thread has none: call cudaSetDevice "
               "first"};
}

Result<CUdevice> CudaDevices::device_of(CUcontext context) const {
  CUdevice device = 0;
  TRY(driver_.check(driver_.cuCtxPushCurrent(context), "cuCtxPushCurrent"));
  const CUresult asked = driver_.cuCtxGetDevice(&device);
  CUcontext popped = nullptr;
  driver_.cuCtxPopCurrent(&popped);
  TRY(driver_.check(asked, "cuCtxGetDevice"));
  return device;
}

Result<int> CudaDevices::device_of(StreamHandle* stream) {
  const CUcontext context = TRY(context_of(stream));
  const CUdevice device = TRY(device_of(context));
  // Retained for a moment, to compare it.
  CUcontext primary = nullptr;
  TRY(driver_.check(driver_.cuDevicePrimaryCtxRetain(&primary, device), "cuDevicePrimaryCtxRetain"));
  TRY(driver_.check(driver_.cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease"));
  for (int index = 0; index < count_; ++index) {
    CUdevice candidate = 0;
    TRY(driver_.check(driver_.cuDeviceGet(&candidate, index), "cuDeviceGet"));
    if (candidate == device && context == primary) return index;
  }
  return Error{Code::kInvalidArgument, "the stream does not belong to the primary context of a device"};
}

CudaDevice::~CudaDevice() {
  // A driver that has ended before this object holds no context any more, so the answer does not matter.
  driver_.cuDevicePrimaryCtxRelease(device_);
}

Status CudaDevice::enter() {
  return driver_.check(driver_.cuCtxPushCurrent(context_), "cuCtxPushCurrent");
}

Status CudaDevice::leave() {
  CUcontext popped = nullptr;
  return driver_.check(driver_.cuCtxPopCurrent(&popped), "cuCtxPopCurrent");
}

// In kHz and bits; memory of double rate. A driver that no longer knows one of the two leaves the speed unknown.
Result<uint64_t> CudaDevice::memory_mbps() {
  uint64_t mbps = 2;
  for (const auto which : {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH}) {
    int value = 0;
    const CUresult asked = driver_.cuDeviceGetAttribute(&value, which, device_);
    if (asked == CUDA_ERROR_INVALID_VALUE) return uint64_t{0};
    TRY(driver_.check(asked, "cuDeviceGetAttribute"));
    mbps *= static_cast<uint64_t>(std::max(value, 0));
  }
  return mbps / 1000;
}

Status CudaDevice::learn(int index) {
  info_.index = index;
  std::array<char, 256> text{};
  const auto attribute = [this](CUdevice_attribute which) -> Result<int> {
    int value = 0;
    TRY(driver_.check(driver_.cuDeviceGetAttribute(&value, which, device_), "cuDeviceGetAttribute"));
    return value;
  };
  TRY(driver_.check(driver_.cuDeviceGetName(text.data(), text.size(), device_), "cuDeviceGetName"));
  info_.name = text.data();
  TRY(driver_.check(driver_.cuDeviceGetPCIBusId(text.data(), text.size(), device_), "cuDeviceGetPCIBusId"));
  info_.pci = text.data();
  // The driver writes capitals, the kernel's names of devices have none.
  for (char& c : info_.pci) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  size_t bytes = 0;
  TRY(driver_.check(driver_.cuDeviceTotalMem(&bytes, device_), "cuDeviceTotalMem"));
  info_.bytes = bytes;
  info_.compute_capability = 10 * TRY(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
                             TRY(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  info_.memory_mbps = TRY(memory_mbps());
  info_.multiprocessors = TRY(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  maps_descriptors_ = can_map_descriptors();
  word_waits_ = TRY(try_word_waits());
  return {};
}

// No attribute says whether the second version of these calls works, so they are tried: a write, and a wait for it.
Result<bool> CudaDevice::try_word_waits() {
  std::byte* const memory = TRY(allocate_pinned(sizeof(uint32_t)));
  Result<StreamHandle*> stream = make_stream(false);
  auto* const word = reinterpret_cast<uint32_t*>(memory);
  *word = 0;
  bool submitted = false;
  Status tried;
  Status finished;
  if (stream.ok()) {
    tried = try_word(stream.value(), word, submitted);
    // Also after an answer that the wait is not supported: the write may be under way.
    finished = synchronize(stream.value());
    const Status destroyed = destroy_stream(stream.value());
    if (tried.ok()) tried = destroyed;
  }
  const bool supported = submitted && *static_cast<const volatile uint32_t*>(word) == kTriedValue;
  TRY(std::move(finished));  // what may still be written to is not freed
  const Status freed = free_pinned(memory);
  TRY(std::move(stream));
  TRY(std::move(tried));
  TRY(freed);
  return supported;
}

Status CudaDevice::try_word(StreamHandle* stream, uint32_t* word, bool& submitted) {
  const CUresult written = call(driver_.cuStreamWriteValue32, raw(stream), raw(word), kTriedValue,
                                static_cast<unsigned>(CU_STREAM_WRITE_VALUE_DEFAULT));
  if (written == CUDA_ERROR_NOT_SUPPORTED) return {};
  TRY(driver_.check(written, "cuStreamWriteValue32"));
  const CUresult waited = call(driver_.cuStreamWaitValue32, raw(stream), raw(word), kTriedValue,
                               static_cast<unsigned>(CU_STREAM_WAIT_VALUE_GEQ));
  if (waited == CUDA_ERROR_NOT_SUPPORTED) return {};
  TRY(driver_.check(waited, "cuStreamWaitValue32"));
  submitted = true;
  return {};
}

}  // namespace trestle
