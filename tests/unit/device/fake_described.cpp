// Memory of the fake driver that other processes map by a descriptor: that of a memfd, whose name says the device.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <set>
#include <string>

#include "unit/device/fake_state.h"

namespace trestle::fake {
namespace {

constexpr size_t kGranularity = size_t{2} << 20;

// Behind a handle. The memory exists as long as a descriptor or a mapping does.
struct Physical {
  int fd = -1;
  size_t bytes = 0;
  int device = 0;
  bool imported = false;
};

Physical& physical(CUmemGenericAllocationHandle handle) {
  return *reinterpret_cast<Physical*>(handle);
}

// Those that were not released.
std::set<Physical*>& handles() {
  static auto& all = *new std::set<Physical*>;
  return all;
}

CUmemGenericAllocationHandle new_handle(const Physical& made) {
  ++state().objects.handles;
  return reinterpret_cast<CUmemGenericAllocationHandle>(*handles().insert(new Physical(made)).first);
}

void drop(Physical* handle) {
  ::close(handle->fd);
  handles().erase(handle);
  delete handle;
}

// The device that a memfd of cuMemCreate belongs to; -1: it is none.
int device_of(int fd) {
  std::array<char, 256> name{};
  if (::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), name.data(), name.size() - 1) < 0) return -1;
  int device = -1;
  return std::sscanf(name.data(), "/memfd:fake device %d", &device) == 1 ? device : -1;
}

bool is_described(const CUmemAllocationProp& properties) {
  return properties.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
         properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && properties.location.id < state().devices;
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  FAKE_ENTER(false);
  if (!is_described(*properties)) return CUDA_ERROR_INVALID_VALUE;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  FAKE_ENTER(false);
  if (!is_described(*properties) || flags != 0 || bytes == 0 || bytes % kGranularity != 0)
    return CUDA_ERROR_INVALID_VALUE;
  Physical made{-1, bytes, properties->location.id, false};
  made.fd = ::memfd_create(("fake device " + std::to_string(made.device)).c_str(), MFD_CLOEXEC);
  if (made.fd < 0 || ::ftruncate(made.fd, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = new_handle(made);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  drop(&physical(handle));
  --state().objects.handles;
  return enter(__func__, false);
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
  FAKE_ENTER(false);
  if (bytes == 0 || bytes % kGranularity != 0 || alignment != 0 || wanted != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  void* const reserved = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(reserved);
  state().reserved[*address] = bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  const auto reserved = state().reserved.find(address);
  if (reserved == state().reserved.end() || reserved->second != bytes || state().blocks.count(address) != 0) {
    misused("addresses are freed that are not reserved, or at which memory is mapped");
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::munmap(reinterpret_cast<void*>(address), bytes);
  state().reserved.erase(reserved);
  return enter(__func__, false);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  FAKE_ENTER(false);
  const auto reserved = state().reserved.find(address);
  const Physical& memory = physical(handle);
  if (reserved == state().reserved.end() || reserved->second != bytes || state().blocks.count(address) != 0 ||
      bytes > memory.bytes || offset != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  void* const mapped =
      ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.fd, 0);
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  Block block{bytes, memory.device, CU_MEMORYTYPE_DEVICE, false, false, false, -1, memory.imported};
  block.described = true;
  state().blocks[address] = block;
  ++(memory.imported ? state().objects.opened : state().objects.memory);
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  const auto block = state().blocks.find(address);
  if (block == state().blocks.end() || !block->second.described || block->second.bytes != bytes) {
    misused("memory is unmapped that is not mapped");
    return CUDA_ERROR_INVALID_VALUE;
  }
  --(block->second.opened ? state().objects.opened : state().objects.memory);
  state().blocks.erase(block);
  ::mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
  return enter(__func__, false);
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
  FAKE_ENTER(false);
  const auto block = state().blocks.find(address);
  if (block == state().blocks.end() || !block->second.described || block->second.bytes != bytes)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const int device = access[i].location.id;
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || device >= state().devices ||
        access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    if (device != block->second.device && !state().peer_access) return CUDA_ERROR_NOT_SUPPORTED;
    block->second.users.insert(context_of(device));
  }
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
  FAKE_ENTER(false);
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const int fd = ::fcntl(physical(handle).fd, F_DUPFD, 0);  // like the driver's, it survives exec
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shared) = fd;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                        CUmemAllocationHandleType type) {
  FAKE_ENTER(false);
  const auto fd = static_cast<int>(reinterpret_cast<uintptr_t>(shared));
  Physical imported{-1, 0, device_of(fd), true};
  struct stat said {};
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || imported.device < 0 || ::fstat(fd, &said) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  imported.fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  imported.bytes = static_cast<size_t>(said.st_size);
  if (imported.fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *handle = new_handle(imported);
  return CUDA_SUCCESS;
}

}  // namespace

void forget_handles() {
  while (!handles().empty()) drop(*handles().begin());
}

const Entry* entry_of_described(const std::string& name) {
#define FAKE_ENTRY(function, version) \
  { #function, make_entry < PFN_##function##_v##version>(function, version) }
  static const std::map<std::string, Entry> entries = {
      FAKE_ENTRY(cuMemGetAllocationGranularity, 10020),
      FAKE_ENTRY(cuMemCreate, 10020),
      FAKE_ENTRY(cuMemRelease, 10020),
      FAKE_ENTRY(cuMemAddressReserve, 10020),
      FAKE_ENTRY(cuMemAddressFree, 10020),
      FAKE_ENTRY(cuMemMap, 10020),
      FAKE_ENTRY(cuMemUnmap, 10020),
      FAKE_ENTRY(cuMemSetAccess, 10020),
      FAKE_ENTRY(cuMemExportToShareableHandle, 10020),
      FAKE_ENTRY(cuMemImportFromShareableHandle, 10020),
  };
#undef FAKE_ENTRY
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

}  // namespace trestle::fake
