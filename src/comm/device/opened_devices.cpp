#include "comm/device/opened_devices.h"

#include <string>

#include "base/fork.h"
#include "base/log.h"
#include "comm/device/device_stream.h"
#include "comm/device/peer_reach.h"

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

bool OpenedDevices::reach_each_other(int a, int b) {
  if (a > b) std::swap(a, b);
  const auto tried = [&]() -> Status {
    OpenedDevice* const first = TRY(open(a));
    OpenedDevice* const second = TRY(open(b));
    TRY(reach_and_verify(*first, *second));
    return reach_and_verify(*second, *first);
  };
  const MutexLock lock(reaching_);
  if (const auto known = reach_.find({a, b}); known != reach_.end()) return known->second;
  const Status reached = tried();
  if (!reached.ok())
    LOG(kInfo, kInit, "%s; messages between them go through host memory", reached.error().message.c_str());
  return reach_.emplace(std::pair(a, b), reached.ok()).first->second;
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
