#include "comm/device/opened_devices.h"

#include <string>

#include "base/fork.h"
#include "base/log.h"
#include "comm/device/device_stream.h"
#include "engine/run/progress.h"

namespace trestle {

Result<std::shared_ptr<DeviceKernels>> OpenedDevice::kernels() {
  const MutexLock lock(loading_);
  if (auto loaded = kernels_.lock()) return loaded;
  std::shared_ptr<DeviceKernels> loaded = TRY(DeviceKernels::create(*device_));
  kernels_ = loaded;
  return loaded;
}

std::shared_ptr<DeviceUse> OpenedDevice::use() {
  const MutexLock lock(using_);
  std::shared_ptr<DeviceUse> use = use_.lock();
  if (use == nullptr) use_ = use = std::make_shared<DeviceUse>(*device_);
  return use;
}

Result<PeerEnd> OpenedDevice::peer_end() {
  std::shared_ptr<DeviceKernels> kernels = TRY(this->kernels());
  const MutexLock lock(probing_);
  if (probe_ == nullptr) probe_ = TRY(PeerProbe::create(*device_));
  return PeerEnd{device_.get(), probe_.get(), std::move(kernels)};
}

void OpenedDevice::keep(std::shared_ptr<const void> opened) {
  const MutexLock lock(keeping_);
  kept_.push_back(std::move(opened));
}

void OpenedDevice::let_go(const std::shared_ptr<const void>& opened) {
  const MutexLock lock(keeping_);
  std::erase(kept_, opened);
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

namespace {

// Many machines have no path. A machine that promises one and does not deliver it has a fault.
void say_why_not(const PeerAnswer& answer) {
  constexpr const char* kText = "%s; messages between them go through host memory";
  if (answer.promised) {
    LOG(kWarn, kInit, kText, answer.why.c_str());
  } else {
    LOG(kInfo, kInit, kText, answer.why.c_str());
  }
}

}  // namespace

// The driver may let this thread wait for memory and for code. So both are there before the mutex is taken, because
// other ranks of the process need it.
Result<bool> OpenedDevices::reach_each_other(int a, int b) {
  const Progress::IdleDrive idle_too;  // the driver may wait for calls that only this thread would drive
  if (a > b) std::swap(a, b);
  const PeerEnd first = TRY(TRY(open(a))->peer_end());
  const PeerEnd second = TRY(TRY(open(b))->peer_end());
  const MutexLock lock(reaching_);
  if (const auto known = reach_.find({a, b}); known != reach_.end()) return known->second;
  PeerAnswer answer = TRY(reach_and_verify(first, second));
  if (answer.reaches) answer = TRY(reach_and_verify(second, first));
  if (!answer.reaches) say_why_not(answer);
  reach_.emplace(std::pair(a, b), answer.reaches);
  return answer.reaches;
}

Result<bool> OpenedDevices::write_words(int device, std::byte* to, const ProbeWords& words) {
  const PeerEnd writer = TRY(TRY(open(device))->peer_end());
  const MutexLock lock(reaching_);
  return writer.probe->write(to, words);
}

Result<std::string> OpenedDevices::read_words(int device, const std::byte* from, const ProbeWords& words) {
  const PeerEnd reader = TRY(TRY(open(device))->peer_end());
  const MutexLock lock(reaching_);
  if (!TRY(reader.probe->is_free()))
    return Error{Code::kUnhandledDeviceError, "the device has not ended an earlier attempt"};
  return reads_words(reader, from, words);
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
