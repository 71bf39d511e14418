#include "comm/setup/device_setup.h"

#include <string>
#include <utility>

#include "comm/device/device_memory.h"
#include "comm/device/opened_devices.h"
#include "engine/work/device_queue.h"

namespace trestle {

namespace {

// Of a queue, which other users of the device may have afterwards.
struct QueueWords {
  explicit QueueWords(StreamLinks& of) : links(of) {}
  QueueWords(const QueueWords&) = delete;
  QueueWords& operator=(const QueueWords&) = delete;
  ~QueueWords() {
    for (uint32_t* const word : words) {
      if (word != nullptr) links.give_word_back(word);
    }
  }

  StreamLinks& links;
  DeviceQueue::Words words{};
};

Result<DevicePlace> open_place(int device) {
  OpenedDevice* const found = TRY(OpenedDevices::process().open(device));
  Device& opened = found->device();
  DevicePlace place;
  place.device = device;
  place.calls = std::make_shared<DriverCalls>();
  auto words = std::make_shared<QueueWords>(found->links());
  for (uint32_t*& word : words->words) word = TRY(found->links().take_word());
  place.held.push_back(words);
  auto queue = TRY(DeviceQueue::create(opened, TRY(found->kernels()), best_way(opened), words->words));
  place.work = std::make_unique<GuardedQueue>(std::move(queue), place.calls);
  const std::shared_ptr<DeviceUse> use = found->use();
  place.held.push_back(use);
  place.memory = std::make_unique<DeviceMemory>(use, SharedPlace::kDevice);
  place.pinned = std::make_unique<DeviceMemory>(use, SharedPlace::kHost);
  return place;
}

}  // namespace

Result<DevicePlace> open_device_of(int64_t device) {
  if (device < 0) return DevicePlace{};
  Result<DevicePlace> place = open_place(static_cast<int>(device));
  if (place.ok()) return place;
  return Error{place.error().code,
               "the communicator is to use device " + std::to_string(device) + ": " + place.error().message};
}

}  // namespace trestle
