// OpenedDevices: the devices that this process uses. Each is opened when it is first asked for, and stays open to the
// end of the process: its primary context is the program's too, and words that streams wait for must outlive the
// streams.
//
// One object per process, made at first use and never destroyed; any thread. A forked child cannot use the driver of
// its parent: its own object fails to open, with the driver's answer.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/device/board_store.h"
#include "comm/device/device_use.h"
#include "comm/device/outbox_memory.h"
#include "comm/device/peer_reach.h"
#include "comm/device/stream_links.h"
#include "device/device.h"
#include "device/kernels.h"
#include "engine/work/outer_stream.h"

namespace trestle {

class OpenedDevice {
 public:
  explicit OpenedDevice(std::unique_ptr<Device> device)
      : device_(std::move(device)),
        links_(*device_),
        outboxes_(*device_, SharedPlace::kDevice),
        host_outboxes_(*device_, SharedPlace::kHost),
        boards_(*device_) {}
  Device& device() { return *device_; }
  StreamLinks& links() { return links_; }
  OutboxStore& outboxes(SharedPlace place) { return place == SharedPlace::kDevice ? outboxes_ : host_outboxes_; }
  BoardStore& boards() { return boards_; }
  // Keeps what was opened or made, to the end of the process or until it is let go: the device may still read it. Any
  // thread.
  void keep(std::shared_ptr<const void> opened);
  void let_go(const std::shared_ptr<const void>& opened);
  // The library's code on this device, which all of its users share: loading it takes the driver long. It stays as long
  // as one of them has it; the last one unloads it. Slow the first time. Any thread.
  Result<std::shared_ptr<DeviceKernels>> kernels();
  // What the communicators that use the device share. Any thread.
  std::shared_ptr<DeviceUse> use();
  // What the device needs to prove paths to other devices. Slow the first time. Any thread, but only one thread at a
  // time may use the probe.
  Result<PeerEnd> peer_end();

 private:
  const std::unique_ptr<Device> device_;
  StreamLinks links_;
  OutboxStore outboxes_;
  OutboxStore host_outboxes_;
  BoardStore boards_;
  Mutex keeping_;
  std::vector<std::shared_ptr<const void>> kept_ TRESTLE_GUARDED_BY(keeping_);
  Mutex loading_;  // so that users who come at the same time load it once; nothing but kernels() takes it
  std::weak_ptr<DeviceKernels> kernels_ TRESTLE_GUARDED_BY(loading_);
  Mutex using_;
  std::weak_ptr<DeviceUse> use_ TRESTLE_GUARDED_BY(using_);
  Mutex probing_;  // while the probe is made
  std::unique_ptr<PeerProbe> probe_ TRESTLE_GUARDED_BY(probing_);
};

class OpenedDevices {
 public:
  static OpenedDevices& process();
  // Slow the first time, as device.h says. A failure is not kept: the next call tries again.
  Result<OpenedDevice*> open(int index);
  // What an address is. Takes any address, once a device was opened.
  Result<PointerInfo> look_at(const void* pointer);
  // Whether two devices of these numbers read each other's memory where it lies. Asked and proved once for the process,
  // and said in the log if they do not. Slow the first time. Errors: the driver's; the next call tries again.
  Result<bool> reach_each_other(int a, int b);
  // Whether the device writes the words to its memory in time. Slow. Errors: the driver's.
  Result<bool> write_words(int device, std::byte* to, const ProbeWords& words);
  // "": the device reads these words in memory of another process, by the driver's copy and by a kernel; else what it
  // does, as in "a kernel read other bytes than were written". Slow. Errors: the driver's; kUnhandledDeviceError: the
  // device is busy with an earlier attempt, so nothing was tried.
  Result<std::string> read_words(int device, const std::byte* from, const ProbeWords& words);
  // Makes the outer stream by which calls are ordered on this stream of a device. Slow the first time for a device.
  Result<std::unique_ptr<OuterStream>> link_to(StreamHandle* stream);

 private:
  Result<Devices*> devices() TRESTLE_REQUIRES(mutex_);

  Mutex mutex_;
  std::unique_ptr<Devices> devices_ TRESTLE_GUARDED_BY(mutex_);
  std::map<int, std::unique_ptr<OpenedDevice>> opened_ TRESTLE_GUARDED_BY(mutex_);
  std::atomic<Devices*> ready_{nullptr};  // devices_, for look_at()
  Mutex reaching_;                        // held while devices are tried, so that all ranks get one answer
  std::map<std::pair<int, int>, bool> reach_ TRESTLE_GUARDED_BY(reaching_);  // the lower number first
};

}  // namespace trestle
