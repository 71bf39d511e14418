#include "comm/device/opened_devices.h"

#include <string>

#include "base/fork.h"
#include "comm/device/device_stream.h"

namespace trestle {

Result<std::shared_ptr<DeviceKernels>> OpenedDevice::kernels() {
  const MutexLock lock(loading_);
  if (auto loaded = kernels_.lock()) return loaded;
  std::shared_ptr<DeviceKernels> loaded = TRY(DeviceKernels::create(*device_));
  kernels_ = loaded;
  return loaded;
}

OpenedDevices& OpenedDevices::process() {
  static constinit PerProcess<OpenedDevices> devices;
  return devices.get();
}

Result<Devices*> OpenedDevices::devices() {
  if (devices_ == nullptr) {
    devices_ = TRY(open_devices());
    ready_.store(devices_.get(), std::memory_order_release);
  }
  return devices_.get();
}

Result<OpenedDevice*> OpenedDevices::open(int index) {
  const MutexLock lock(mutex_);
  Devices* const devices = TRY(this->devices());
  if (const auto found = opened_.find(index); found != opened_.end()) return found->second.get();
  auto opened = std::make_unique<OpenedDevice>(TRY(devices->open(index)));
  TRY(opened->links().prepare());
  return opened_.emplace(index, std::move(opened)).first->second.get();
}

Result<PointerInfo> OpenedDevices::look_at(const void* pointer) {
  Devices* const devices = ready_.load(std::memory_order_acquire);
  CHECK(devices != nullptr, "a pointer is looked at before a device was opened");
  return devices->look_at(pointer);
}

Result<std::unique_ptr<OuterStream>> OpenedDevices::link_to(StreamHandle* stream) {
  Devices* devices = nullptr;
  {
    const MutexLock lock(mutex_);
    devices = TRY(this->devices());
  }
  OpenedDevice* const opened = TRY(open(TRY(devices->device_of(stream))));
  return DeviceStream::create(*opened, stream);
}

}  // namespace trestle
