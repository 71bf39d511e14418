#include "bindings/nccl/cuda_driver.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

namespace trestle::nccl {

namespace {

constexpr int kSucceeded = 0;      // CUDA_SUCCESS
constexpr int kMemoryType = 2;     // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kOrdinal = 9;        // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kOfDevice = 2;  // CU_MEMORYTYPE_DEVICE

// The driver's functions, in its own types: results, devices and attributes are ints, contexts are pointers, memory of
// devices is an integer.
struct Functions {
  int (*count)(int*);
  int (*device)(int*, int);
  int (*current)(void**);
  int (*device_of_current)(int*);
  int (*retain)(void**, int);
  int (*release)(int);
  int (*push)(void*);
  int (*pop)(void**);
  int (*allocate)(uintptr_t*, size_t);
  int (*free)(uintptr_t);
  int (*look_at)(unsigned, int*, void**, uintptr_t);
};

// The version of CUDA that introduced the signature chooses among those of the same name.
class Finder {
 public:
  explicit Finder(void* library)
      : find_(reinterpret_cast<FindEntry>(dlsym(library, "cuGetProcAddress_v2"))), all_(find_ != nullptr) {}

  template <class Function>
  void find(const char* name, int version, Function& function) {
    void* entry = nullptr;
    int found = 0;
    if (!all_ || find_(name, &entry, version, 0, &found) != kSucceeded || entry == nullptr) {
      all_ = false;
      return;
    }
    function = reinterpret_cast<Function>(entry);
  }
  bool has_all() const { return all_; }

 private:
  using FindEntry = int (*)(const char*, void**, int, uint64_t, int*);
  const FindEntry find_;
  bool all_;
};

bool find_all(void* library, Functions& functions) {
  Finder finder(library);
  finder.find("cuDeviceGetCount", 2000, functions.count);
  finder.find("cuDeviceGet", 2000, functions.device);
  finder.find("cuCtxGetCurrent", 4000, functions.current);
  finder.find("cuCtxGetDevice", 2000, functions.device_of_current);
  finder.find("cuDevicePrimaryCtxRetain", 7000, functions.retain);
  finder.find("cuDevicePrimaryCtxRelease", 11000, functions.release);
  finder.find("cuCtxPushCurrent", 4000, functions.push);
  finder.find("cuCtxPopCurrent", 4000, functions.pop);
  finder.find("cuMemAlloc", 3020, functions.allocate);
  finder.find("cuMemFree", 3020, functions.free);
  finder.find("cuPointerGetAttributes", 7000, functions.look_at);
  return finder.has_all();
}

// nullptr: the process has no driver. It may load one later, so that is not kept.
const Functions* driver() {
  static Functions functions;
  static std::atomic<const Functions*> found{nullptr};
  static std::atomic_flag is_first;
  if (const Functions* const known = found.load(std::memory_order_acquire)) return known;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
  Functions tried = {};
  if (library == nullptr || !find_all(library, tried)) return nullptr;
  if (!is_first.test_and_set()) {
    functions = tried;
    found.store(&functions, std::memory_order_release);
    found.notify_all();
  }
  found.wait(nullptr, std::memory_order_acquire);
  return found.load(std::memory_order_acquire);
}

}  // namespace

int device_count() {
  const Functions* const cuda = driver();
  int count = 0;
  return cuda != nullptr && cuda->count(&count) == kSucceeded ? count : 0;
}

int current_device() {
  const int count = device_count();
  if (count == 0) return kNoDevice;
  const Functions* const cuda = driver();
  void* context = nullptr;
  int current = 0;
  if (cuda->current(&context) != kSucceeded) return kNoDevice;
  if (context == nullptr) return 0;
  if (cuda->device_of_current(&current) != kSucceeded) return kNoDevice;
  for (int index = 0; index < count; ++index) {
    int device = 0;
    if (cuda->device(&device, index) == kSucceeded && device == current) return index;
  }
  return kNoDevice;
}

OnDevice::OnDevice(int device) : device_(device) {
  const Functions* const cuda = driver();
  void* context = nullptr;
  if (cuda == nullptr || cuda->retain(&context, device) != kSucceeded) return;
  if (cuda->push(context) == kSucceeded) {
    context_ = context;
  } else {
    cuda->release(device);
  }
}

OnDevice::~OnDevice() {
  if (context_ == nullptr) return;
  void* popped = nullptr;
  driver()->pop(&popped);
  if (!keeps_) driver()->release(device_);
}

bool allocate_on(int device, size_t bytes, void** memory) {
  OnDevice on(device);
  uintptr_t made = 0;
  if (!on.entered() || driver()->allocate(&made, bytes) != kSucceeded) return false;
  on.keep_context();  // the memory would end with it
  *memory = reinterpret_cast<void*>(made);
  return true;
}

bool free_on(int device, void* memory) {
  const OnDevice on(device);
  return on.entered() && driver()->free(reinterpret_cast<uintptr_t>(memory)) == kSucceeded;
}

int device_of_memory(const void* memory) {
  if (device_count() == 0) return kNoDevice;
  unsigned type = 0;
  int ordinal = kNoDevice;
  int questions[] = {kMemoryType, kOrdinal};
  void* answers[] = {&type, &ordinal};
  if (driver()->look_at(2, questions, answers, reinterpret_cast<uintptr_t>(memory)) != kSucceeded) return kNoDevice;
  return type == kOfDevice ? ordinal : kNoDevice;
}

}  // namespace trestle::nccl
