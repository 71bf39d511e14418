// Memory of a device and of its peers.
#include <cstring>

#include "device/cuda_device.h"

namespace trestle {

Result<std::byte*> CudaDevice::allocate(uint64_t bytes) {
  CUdeviceptr memory = 0;
  TRY(DRIVER_CALL(cuMemAlloc, &memory, bytes));
  return reinterpret_cast<std::byte*>(memory);
}

Status CudaDevice::free(std::byte* memory) {
  return DRIVER_CALL(cuMemFree, raw(memory));
}

Result<std::byte*> CudaDevice::allocate_pinned(uint64_t bytes) {
  void* memory = nullptr;
  // Portable: pinned for all devices. Mapped memory has one address everywhere on 64-bit Linux.
  TRY(DRIVER_CALL(cuMemHostAlloc, &memory, bytes,
                  static_cast<unsigned>(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)));
  return static_cast<std::byte*>(memory);
}

Status CudaDevice::free_pinned(std::byte* memory) {
  return DRIVER_CALL(cuMemFreeHost, static_cast<void*>(memory));
}

Status CudaDevice::pin(std::byte* memory, uint64_t bytes) {
  TRY(DRIVER_CALL(cuMemHostRegister, static_cast<void*>(memory), bytes,
                  static_cast<unsigned>(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)));
  const Status same = has_one_address(memory);
  if (!same.ok()) TRY(unpin(memory));
  return same;
}

// Some devices (CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) see registered memory elsewhere.
Status CudaDevice::has_one_address(std::byte* memory) {
  CUdeviceptr seen = 0;
  TRY(DRIVER_CALL(cuMemHostGetDevicePointer, &seen, static_cast<void*>(memory), 0u));
  if (seen == raw(memory)) return {};
  return Error{Code::kUnhandledDeviceError,
               "device " + std::to_string(info_.index) + " sees pinned memory at another address than the host"};
}

Status CudaDevice::unpin(std::byte* memory) {
  return DRIVER_CALL(cuMemHostUnregister, static_cast<void*>(memory));
}

Result<MemoryTicket> CudaDevice::share(const std::byte* memory) {
  static_assert(sizeof(CUipcMemHandle) == sizeof(MemoryTicket::handle));
  CUdeviceptr base = 0;
  size_t bytes = 0;
  TRY(DRIVER_CALL(cuMemGetAddressRange, &base, &bytes, raw(memory)));
  CUipcMemHandle handle{};
  TRY(DRIVER_CALL(cuIpcGetMemHandle, &handle, base));
  MemoryTicket ticket;
  std::memcpy(ticket.handle.data(), &handle, sizeof handle);
  ticket.offset = raw(memory) - base;
  return ticket;
}

Result<std::byte*> CudaDevice::open(const MemoryTicket& ticket) {
  CUipcMemHandle handle;
  std::memcpy(&handle, ticket.handle.data(), sizeof handle);
  CUdeviceptr base = 0;
  // The flag lets a device open memory of another one that it reaches.
  TRY(DRIVER_CALL(cuIpcOpenMemHandle, &base, handle, static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)));
  return reinterpret_cast<std::byte*>(base) + ticket.offset;
}

Status CudaDevice::close(std::byte* opened) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  TRY(DRIVER_CALL(cuMemGetAddressRange, &base, &bytes, raw(opened)));
  return DRIVER_CALL(cuIpcCloseMemHandle, base);
}

Result<bool> CudaDevice::can_reach(const Device& other) {
  const auto& peer = static_cast<const CudaDevice&>(other);
  if (peer.device_ == device_) return true;
  int reaches = 0;
  TRY(driver_.check(driver_.cuDeviceCanAccessPeer(&reaches, device_, peer.device_), "cuDeviceCanAccessPeer"));
  return reaches != 0;
}

Result<bool> CudaDevice::joined_by_nvlink(const std::string& pci) {
  CUdevice peer = 0;
  if (driver_.cuDeviceGetByPCIBusId(&peer, pci.c_str()) != CUDA_SUCCESS || peer == device_) return false;
  // Between GPUs, NVLink carries atomic operations and PCIe does not.
  int atomics = 0;
  TRY(driver_.check(
      driver_.cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device_, peer),
      "cuDeviceGetP2PAttribute"));
  return atomics != 0;
}

Status CudaDevice::reach(const Device& other) {
  const auto& peer = static_cast<const CudaDevice&>(other);
  if (peer.device_ == device_) return {};
  const CUresult enabled = call(driver_.cuCtxEnablePeerAccess, peer.context_, 0u);
  if (enabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return {};
  return driver_.check(enabled, "cuCtxEnablePeerAccess");
}

}  // namespace trestle
