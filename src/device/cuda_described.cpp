// Memory that other processes map by a descriptor: CUDA's virtual memory management.
#include <fcntl.h>

#include <algorithm>

#include "device/cuda_device.h"

namespace trestle {

CUmemAllocationProp CudaDevice::described() const {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_;
  return properties;
}

// Drivers of virtual machines may refuse any of this. There is another way to share memory.
bool CudaDevice::can_map_descriptors() const {
  for (const auto which : {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                           CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED}) {
    int supported = 0;
    if (driver_.cuDeviceGetAttribute(&supported, which, device_) != CUDA_SUCCESS || supported == 0) return false;
  }
  const CUmemAllocationProp properties = described();
  size_t granularity = 0;
  const CUresult asked =
      call(driver_.cuMemGetAllocationGranularity, &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return asked == CUDA_SUCCESS && granularity != 0 && kDescribedBlockBytes % granularity == 0;
}

Result<std::vector<CUdevice>> CudaDevice::possible_users() const {
  int count = 0;
  TRY(driver_.check(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<CUdevice> users{device_};
  for (int index = 0; index < count; ++index) {
    CUdevice other = 0;
    TRY(driver_.check(driver_.cuDeviceGet(&other, index), "cuDeviceGet"));
    if (other == device_) continue;
    int reaches = 0;
    TRY(driver_.check(driver_.cuDeviceCanAccessPeer(&reaches, other, device_), "cuDeviceCanAccessPeer"));
    if (reaches != 0) users.push_back(other);
  }
  return users;
}

Status CudaDevice::let_use(CUdeviceptr memory, uint64_t bytes, const std::vector<CUdevice>& users) const {
  std::vector<CUmemAccessDesc> access(users.size());
  std::ranges::transform(users, access.begin(), [](CUdevice user) {
    CUmemAccessDesc one{};
    one.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    one.location.id = user;
    one.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return one;
  });
  return DRIVER_CALL(cuMemSetAccess, memory, bytes, access.data(), access.size());
}

// What is mapped exists without its handle.
Result<std::byte*> CudaDevice::map(CUmemGenericAllocationHandle handle, uint64_t bytes,
                                   const std::vector<CUdevice>& users) {
  CUdeviceptr memory = 0;
  Status mapped = DRIVER_CALL(cuMemAddressReserve, &memory, bytes, size_t{0}, CUdeviceptr{0}, 0ull);
  const bool is_reserved = mapped.ok();
  if (is_reserved) mapped = DRIVER_CALL(cuMemMap, memory, bytes, size_t{0}, handle, 0ull);
  const bool is_mapped = mapped.ok();
  if (is_mapped) mapped = let_use(memory, bytes, users);
  const Status released = DRIVER_CALL(cuMemRelease, handle);
  if (mapped.ok() && released.ok()) return reinterpret_cast<std::byte*>(memory);
  // The first error says why.
  [[maybe_unused]] Status undone;
  if (is_mapped) undone = DRIVER_CALL(cuMemUnmap, memory, bytes);
  if (is_reserved) undone = DRIVER_CALL(cuMemAddressFree, memory, bytes);
  return mapped.ok() ? released.error() : mapped.error();
}

Result<DescribedMemory> CudaDevice::allocate_described(uint64_t bytes) {
  if (!maps_descriptors_) return Error{Code::kUnhandledDeviceError, "the device maps no memory by descriptors"};
  const std::vector<CUdevice> users = TRY(possible_users());
  const CUmemAllocationProp properties = described();
  CUmemGenericAllocationHandle handle = 0;
  TRY(DRIVER_CALL(cuMemCreate, &handle, bytes, &properties, 0ull));
  int exported = -1;
  const Status descriptor = DRIVER_CALL(cuMemExportToShareableHandle, static_cast<void*>(&exported), handle,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
  DescribedMemory made;
  if (descriptor.ok()) {
    made.descriptor = UniqueFd(exported);
    ::fcntl(made.descriptor.get(), F_SETFD, FD_CLOEXEC);
  }
  if (!descriptor.ok()) {
    [[maybe_unused]] const Status released = DRIVER_CALL(cuMemRelease, handle);
    return descriptor.error();
  }
  made.memory = TRY(map(handle, bytes, users));
  return made;
}

Result<std::byte*> CudaDevice::map_described(int descriptor, uint64_t bytes) {
  if (!maps_descriptors_) return Error{Code::kUnhandledDeviceError, "the device maps no memory by descriptors"};
  CUmemGenericAllocationHandle handle = 0;
  // The driver takes the descriptor as if it were a pointer.
  void* const as_pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(descriptor));
  TRY(DRIVER_CALL(cuMemImportFromShareableHandle, &handle, as_pointer, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  return map(handle, bytes, {device_});
}

Status CudaDevice::unmap_described(std::byte* memory, uint64_t bytes) {
  TRY(DRIVER_CALL(cuMemUnmap, raw(memory), bytes));
  return DRIVER_CALL(cuMemAddressFree, raw(memory), bytes);
}

}  // namespace trestle
