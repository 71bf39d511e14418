// Entry points of the fake driver: devices, contexts, memory, modules.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/cuda/images.h"
#include "unit/device/fake_state.h"

#undef cuDeviceTotalMem
#undef cuDevicePrimaryCtxRelease
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemHostRegister
#undef cuMemHostGetDevicePointer
#undef cuMemGetAddressRange
#undef cuIpcOpenMemHandle

namespace trestle::fake {
namespace {

CUresult cuInit(unsigned) {
  FAKE_ENTER(false);
  return state().devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
CUresult cuDriverGetVersion(int* version) {
  FAKE_ENTER(false);
  *version = state().version;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  const bool known = error == CUDA_ERROR_OUT_OF_MEMORY || error == CUDA_ERROR_NO_DEVICE;
  *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_NO_DEVICE";
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = "in words";
  return error == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceGetCount(int* count) {
  FAKE_ENTER(false);
  *count = state().devices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  FAKE_ENTER(false);
  *device = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) {
  FAKE_ENTER(false);
  std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* name, int bytes, CUdevice device) {
  FAKE_ENTER(false);
  std::snprintf(name, static_cast<size_t>(bytes), "0000:A%d:00.0", device);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* name) {
  FAKE_ENTER(false);
  for (*device = 0; *device < state().devices; ++*device) {
    std::array<char, 32> own{};
    std::snprintf(own.data(), own.size(), "0000:a%d:00.0", *device);
    if (own.data() == std::string_view(name)) return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute which, CUdevice, CUdevice) {
  FAKE_ENTER(false);
  *value = which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED && state().nvlinks ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  FAKE_ENTER(false);
  *bytes = size_t{1} << 30;
  return CUDA_SUCCESS;
}
bool is_of_descriptors(CUdevice_attribute which) {
  return which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
         which == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  FAKE_ENTER(false);
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR  ? 9
           : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT    ? 4
           : which == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE       ? 2'500'000
           : which == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH ? 4096
           : is_of_descriptors(which)                             ? state().descriptors
                                                                  : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_ENTER(false);
  *context = context_of(device);
  ++state().objects.contexts;
  return CUDA_SUCCESS;
}
// What destroys is done even if it answers with an error, as with CUDA.
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  --state().objects.contexts;
  return enter(__func__, false);
}
CUresult cuCtxPushCurrent(CUcontext context) {
  FAKE_ENTER(false);
  current().push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = current().back();
  current().pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_ENTER(false);
  *context = current().empty() ? nullptr : current().back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE_ENTER(true);
  *device = static_cast<int>(reinterpret_cast<int*>(current().back()) - reinterpret_cast<int*>(context_of(0)));
  return CUDA_SUCCESS;
}

CUresult add_block(void** memory, size_t bytes, CUmemorytype type, int& count) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  int fd = -1;
  const bool shared = type == CU_MEMORYTYPE_DEVICE && bytes >= kSharedFrom;
  *memory = shared ? map_new(bytes, fd) : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto device =
      static_cast<int>(reinterpret_cast<int*>(current().back()) - reinterpret_cast<int*>(context_of(0)));
  state().blocks[reinterpret_cast<uintptr_t>(*memory)] = {bytes, device, type, false, false, state().pools, fd, false};
  ++count;
  return CUDA_SUCCESS;
}
CUresult remove_block(uintptr_t memory, CUmemorytype type, bool registered, int& count) {
  const auto block = state().blocks.find(memory);
  if (block == state().blocks.end() || block->second.type != type || block->second.registered != registered ||
      block->second.opened || block->second.described) {
    misused("memory is freed that is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto& [bytes, fd] = std::pair(block->second.bytes, block->second.fd);
  if (fd >= 0) {
    unmap(reinterpret_cast<void*>(memory), bytes, fd);
  } else if (!registered) {
    std::free(reinterpret_cast<void*>(memory));
  }
  state().blocks.erase(block);
  --count;
  return CUDA_SUCCESS;
}
// The allocation that holds an address, or the end.
std::map<uintptr_t, Block>::iterator block_of(uintptr_t address) {
  auto& blocks = state().blocks;
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return blocks.end();
  --after;
  return address < after->first + after->second.bytes ? after : blocks.end();
}
CUresult cuMemAlloc(CUdeviceptr* memory, size_t bytes) {
  FAKE_ENTER(true);
  void* made = nullptr;
  const CUresult result = add_block(&made, bytes, CU_MEMORYTYPE_DEVICE, state().objects.memory);
  *memory = reinterpret_cast<CUdeviceptr>(made);
  return result;
}
CUresult cuMemFree(CUdeviceptr memory) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  const CUresult freed = remove_block(memory, CU_MEMORYTYPE_DEVICE, false, state().objects.memory);
  const CUresult entered = enter(__func__, true);
  return entered != CUDA_SUCCESS ? entered : freed;
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  FAKE_ENTER(true);
  return add_block(memory, bytes, CU_MEMORYTYPE_HOST, state().objects.pinned);
}
CUresult cuMemFreeHost(void* memory) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  const bool is_written = state().writes.count(reinterpret_cast<uintptr_t>(memory)) != 0;
  if (is_written && state().broken == CUDA_SUCCESS) misused("a word is freed that a stream will write");
  const CUresult freed =
      remove_block(reinterpret_cast<uintptr_t>(memory), CU_MEMORYTYPE_HOST, false, state().objects.pinned);
  const CUresult entered = enter(__func__, true);
  return entered != CUDA_SUCCESS ? entered : freed;
}
CUresult cuMemHostRegister(void* memory, size_t bytes, unsigned) {
  FAKE_ENTER(true);
  if (block_of(reinterpret_cast<uintptr_t>(memory)) != state().blocks.end()) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  state().blocks[reinterpret_cast<uintptr_t>(memory)] = {bytes, 0, CU_MEMORYTYPE_HOST, false, true, false, -1, false};
  ++state().objects.pinned;
  return CUDA_SUCCESS;
}
CUresult cuMemHostUnregister(void* memory) {
  FAKE_ENTER(true);
  return remove_block(reinterpret_cast<uintptr_t>(memory), CU_MEMORYTYPE_HOST, true, state().objects.pinned);
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* seen, void* memory, unsigned flags) {
  FAKE_ENTER(true);
  if (flags != 0) misused("flags of cuMemHostGetDevicePointer");
  const auto block = block_of(reinterpret_cast<uintptr_t>(memory));
  if (block == state().blocks.end() || block->second.type != CU_MEMORYTYPE_HOST) return CUDA_ERROR_INVALID_VALUE;
  *seen = reinterpret_cast<uintptr_t>(memory) + (state().registered_elsewhere ? 4096 : 0);
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  FAKE_ENTER(true);
  const auto block = block_of(address);
  if (block == state().blocks.end()) return CUDA_ERROR_NOT_FOUND;
  *base = block->first;
  *bytes = block->second.bytes;
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* questions, void** answers, CUdeviceptr pointer) {
  FAKE_ENTER(false);
  const auto found = block_of(pointer);
  const bool known = found != state().blocks.end();
  const Block block =
      known ? found->second : Block{0, -2, static_cast<CUmemorytype>(0), false, false, false, -1, false};
  for (unsigned i = 0; i < count; ++i) {
    switch (questions[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(answers[i]) = block.type;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(answers[i]) = block.managed;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(answers[i]) = block.device;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *static_cast<CUdeviceptr*>(answers[i]) = known ? found->first : 0;
        break;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *static_cast<size_t*>(answers[i]) = block.bytes;
        break;
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *static_cast<unsigned*>(answers[i]) =
            block.type == CU_MEMORYTYPE_DEVICE && !block.managed && !block.of_pool && !block.described;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}
// What is in a handle.
struct Handle {
  CUdeviceptr memory;
  size_t bytes;
  int process;
  int fd;
  int device;
};
static_assert(sizeof(Handle) <= sizeof(CUipcMemHandle));

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr memory) {
  FAKE_ENTER(true);
  const auto block = state().blocks.find(memory);
  if (block == state().blocks.end() || block->second.of_pool || block->second.described)
    return CUDA_ERROR_INVALID_VALUE;
  const Handle made{memory, block->second.bytes, ::getpid(), block->second.fd, block->second.device};
  std::memcpy(handle, &made, sizeof made);
  return CUDA_SUCCESS;
}
CUresult cuIpcOpenMemHandle(CUdeviceptr* memory, CUipcMemHandle handle, unsigned flags) {
  FAKE_ENTER(true);
  Handle said;
  std::memcpy(&said, &handle, sizeof said);
  if (said.process == ::getpid()) {
    if (state().blocks.count(said.memory) == 0) return CUDA_ERROR_INVALID_VALUE;
    *memory = said.memory;
  } else {
    const CUcontext owner = context_of(said.device);
    if (owner != current().back()) {
      if (!state().peer_access || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
      state().peers.emplace(current().back(), owner);
    }
    void* const mapped = said.fd < 0 ? nullptr : map_of(said.process, said.fd, said.bytes);
    if (mapped == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *memory = reinterpret_cast<CUdeviceptr>(mapped);
    state().blocks[*memory] = {said.bytes, said.device, CU_MEMORYTYPE_DEVICE, false, false, false, -1, true};
  }
  ++state().objects.opened;
  return CUDA_SUCCESS;
}
CUresult cuIpcCloseMemHandle(CUdeviceptr memory) {
  FAKE_ENTER(true);
  const auto block = state().blocks.find(memory);
  if (block == state().blocks.end()) {
    misused("a mapping is closed by an address inside it");
  } else if (block->second.opened) {
    unmap(reinterpret_cast<void*>(memory), block->second.bytes, -1);
    state().blocks.erase(block);
  }
  --state().objects.opened;
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  FAKE_ENTER(false);
  *can = state().peer_access ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  FAKE_ENTER(true);
  if (!state().peer_access) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const bool added = state().peers.emplace(current().back(), peer).second;
  return added ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

}  // namespace

bool is_of_device(const void* address) {
  const auto block = block_of(reinterpret_cast<uintptr_t>(address));
  return block != state().blocks.end() && block->second.type == CU_MEMORYTYPE_DEVICE;
}

bool is_elsewhere(CUcontext context, const void* address) {
  const auto block = block_of(reinterpret_cast<uintptr_t>(address));
  if (context == nullptr || block == state().blocks.end()) return false;
  const Block& found = block->second;
  if (found.described && found.users.count(context) == 0)
    misused("memory is used by a device that has no access to it");
  if (found.described) return context_of(found.device) != context;
  if (found.type != CU_MEMORYTYPE_DEVICE || found.managed || context_of(found.device) == context) return false;
  const bool reaches = state().peers.count({context, context_of(found.device)}) != 0 && !found.of_pool;
  if (!reaches) misused("memory of another device is used without access to it");
  return true;
}

namespace {

// A fatbin begins with a magic number, its version, the bytes of this header, and those behind it. 0: it is none.
size_t bytes_of(const void* fatbin) {
  constexpr uint32_t kMagic = 0xBA55ED50;
  uint32_t magic = 0;
  std::memcpy(&magic, fatbin, sizeof magic);
  if (magic != kMagic) return 0;
  uint16_t header = 0;
  uint64_t rest = 0;
  std::memcpy(&header, static_cast<const std::byte*>(fatbin) + 6, sizeof header);
  std::memcpy(&rest, static_cast<const std::byte*>(fatbin) + 8, sizeof rest);
  return header + rest;
}

// Which kernels a module from these bytes has: "reduce_float", "move". The caller has its own copy of the images that
// this driver is linked with.
std::string name_of(const void* image) {
  const size_t bytes = bytes_of(image);
  for (const kernels::CudaImage& own : kernels::cuda_images()) {
    if (bytes > 0 && bytes_of(own.bytes) == bytes && std::memcmp(image, own.bytes, bytes) == 0)
      return std::string(own.name);
  }
  return "";
}

CUresult cuModuleLoadData(CUmodule* code, const void* image) {
  FAKE_ENTER(true);
  const std::string name = name_of(image);
  if (name.empty()) return CUDA_ERROR_INVALID_IMAGE;
  state().modules.push_back(std::make_unique<Module>(Module{name}));
  *code = reinterpret_cast<CUmodule>(state().modules.back().get());
  ++state().objects.modules;
  ++state().loads;
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  --state().objects.modules;
  return enter(__func__, true);
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule code, const char* name) {
  FAKE_ENTER(true);
  auto kernel = std::make_unique<Kernel>(Kernel{reinterpret_cast<Module*>(code)->name, name});
  if (parameter_bytes(*kernel) == 0) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(kernel.get());
  state().kernels.push_back(std::move(kernel));
  return CUDA_SUCCESS;
}
CUresult cuFuncLoad(CUfunction) {
  FAKE_ENTER(true);
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, size_t) {
  FAKE_ENTER(true);
  *blocks = 2;
  return CUDA_SUCCESS;
}

}  // namespace

const Entry* entry_of_setup(const std::string& name) {
#define FAKE_ENTRY(function, version) \
  { #function, make_entry < PFN_##function##_v##version>(function, version) }
  static const std::map<std::string, Entry> entries = {
      FAKE_ENTRY(cuInit, 2000),
      FAKE_ENTRY(cuDriverGetVersion, 2020),
      FAKE_ENTRY(cuGetErrorName, 6000),
      FAKE_ENTRY(cuGetErrorString, 6000),
      FAKE_ENTRY(cuDeviceGetCount, 2000),
      FAKE_ENTRY(cuDeviceGet, 2000),
      FAKE_ENTRY(cuDeviceGetName, 2000),
      FAKE_ENTRY(cuDeviceGetPCIBusId, 4010),
      FAKE_ENTRY(cuDeviceTotalMem, 3020),
      FAKE_ENTRY(cuDeviceGetAttribute, 2000),
      FAKE_ENTRY(cuDeviceGetByPCIBusId, 4010),
      FAKE_ENTRY(cuDeviceGetP2PAttribute, 8000),
      FAKE_ENTRY(cuDevicePrimaryCtxRetain, 7000),
      FAKE_ENTRY(cuDevicePrimaryCtxRelease, 11000),
      FAKE_ENTRY(cuCtxPushCurrent, 4000),
      FAKE_ENTRY(cuCtxPopCurrent, 4000),
      FAKE_ENTRY(cuCtxGetCurrent, 4000),
      FAKE_ENTRY(cuCtxGetDevice, 2000),
      FAKE_ENTRY(cuMemAlloc, 3020),
      FAKE_ENTRY(cuMemFree, 3020),
      FAKE_ENTRY(cuMemHostAlloc, 2020),
      FAKE_ENTRY(cuMemFreeHost, 2000),
      FAKE_ENTRY(cuMemHostRegister, 6050),
      FAKE_ENTRY(cuMemHostUnregister, 4000),
      FAKE_ENTRY(cuMemHostGetDevicePointer, 3020),
      FAKE_ENTRY(cuMemGetAddressRange, 3020),
      FAKE_ENTRY(cuPointerGetAttributes, 7000),
      FAKE_ENTRY(cuIpcGetMemHandle, 4010),
      FAKE_ENTRY(cuIpcOpenMemHandle, 11000),
      FAKE_ENTRY(cuIpcCloseMemHandle, 4010),
      FAKE_ENTRY(cuDeviceCanAccessPeer, 4000),
      FAKE_ENTRY(cuCtxEnablePeerAccess, 4000),
      FAKE_ENTRY(cuModuleLoadData, 2000),
      FAKE_ENTRY(cuModuleUnload, 2000),
      FAKE_ENTRY(cuModuleGetFunction, 2000),
      FAKE_ENTRY(cuFuncLoad, 12040),
      FAKE_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050),
  };
#undef FAKE_ENTRY
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

}  // namespace trestle::fake
