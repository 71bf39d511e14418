#include "perf/device/holding.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "device/gate.h"
#include "kernels/cuda/images.h"

namespace trestle::perf {

namespace {

constexpr uint64_t kWorkBytes = 64 << 10;
constexpr int kIntoTheDriverMs = 100;
constexpr uint64_t kSpinLimitNs = 10'000'000'000;

// A kernel that spins until a word changes: another way to hold a stream, beside those of Gate.
class Spinner {
 public:
  static Result<std::unique_ptr<Spinner>> create(Device& device) {
    for (const kernels::CudaImage& image : kernels::cuda_images()) {
      if (image.name != "hold") continue;
      std::unique_ptr<Spinner> spinner(new Spinner(device));
      spinner->code_ = TRY(device.load(image.bytes));
      spinner->kernel_ = TRY(device.find_kernel(spinner->code_, "spin_until"));
      spinner->word_ = reinterpret_cast<uint32_t*>(TRY(device.allocate_pinned(sizeof(uint32_t))));
      *spinner->word_ = 0;
      return spinner;
    }
    return Error{Code::kInvalidUsage, "this build has no kernels for GPUs"};
  }
  // Ends at once: the word is at 0.
  Status warm_up(StreamHandle* stream) { return launch(stream, 0); }
  Status hold(StreamHandle* stream) { return launch(stream, 1); }
  void open() { *static_cast<volatile uint32_t*>(word_) = 1; }

 private:
  explicit Spinner(Device& device) : device_(device) {}
  Status launch(StreamHandle* stream, uint32_t value) {
    uint64_t limit_ns = kSpinLimitNs;
    const std::array<void*, 3> arguments = {&word_, &value, &limit_ns};
    return device_.launch(kernel_, {1, 1, 1}, arguments, stream);
  }
  Device& device_;
  ModuleHandle* code_ = nullptr;
  KernelHandle* kernel_ = nullptr;
  uint32_t* word_ = nullptr;
};

// Frees nothing: the end of the process frees everything.
class User {
 public:
  Status begin(const HoldCase& what) {
    devices_ = TRY(open_devices());
    device_ = TRY(devices_->open(0));
    memory_ = TRY(device_->allocate(kWorkBytes));
    other_ = TRY(device_->allocate(kWorkBytes));
    pinned_ = TRY(device_->allocate_pinned(kWorkBytes));
    other_pinned_ = TRY(device_->allocate_pinned(kWorkBytes));
    if (device_->maps_descriptors()) described_ = TRY(device_->allocate_described(kDescribedBlockBytes));
    gate_ = TRY(Gate::create(*device_, what.way == HoldWay::kHost ? GateWay::kHost : GateWay::kWord));
    if (what.way == HoldWay::kSpin) spinner_ = TRY(Spinner::create(*device_));
    for (int i = 0; i < what.streams; ++i) streams_.push_back(TRY(device_->make_stream(false)));
    for (StreamHandle* const stream : streams_) {
      TRY(work(stream));
      if (spinner_ != nullptr) TRY(spinner_->warm_up(stream));
      TRY(device_->synchronize(stream));
    }
    return {};
  }
  Status hold_some(const HoldCase& what) {
    for (int i = 0; i < what.streams; ++i) {
      TRY(work(streams_[static_cast<size_t>(i)]));
      if (i < what.held) TRY(hold(what.way, streams_[static_cast<size_t>(i)]));
      TRY(work(streams_[static_cast<size_t>(i)]));
    }
    return {};
  }
  // On a stream of its own, which is not held.
  Status act(HoldAct what) {
    if (what == HoldAct::kLoad) {
      const std::span<const kernels::CudaImage> images = kernels::cuda_images();
      for (const kernels::CudaImage& image : images) {
        if (image.name == "reduce_float") TRY(device_->load(image.bytes));
      }
    }
    if (what == HoldAct::kPageable) {
      std::vector<std::byte> pageable(kWorkBytes);
      StreamHandle* const stream = TRY(device_->make_stream(false));
      TRY(device_->copy(pageable.data(), other_, kWorkBytes, stream));
      TRY(device_->synchronize(stream));
    }
    if (what == HoldAct::kFree) TRY(device_->free(other_));
    if (what == HoldAct::kUnmap && described_.memory != nullptr)
      TRY(device_->unmap_described(described_.memory, kDescribedBlockBytes));
    if (what == HoldAct::kFreePinned) TRY(device_->free_pinned(other_pinned_));
    return {};
  }
  Status end() {
    if (gate_ != nullptr) gate_->open_all();
    if (spinner_ != nullptr) spinner_->open();
    for (StreamHandle* const stream : streams_) TRY(device_->synchronize(stream));
    return {};
  }

 private:
  // Copies have queues of their own in the driver, so what is behind the hold has some.
  Status work(StreamHandle* stream) {
    TRY(device_->fill(memory_, std::byte{1}, kWorkBytes, stream));
    TRY(device_->copy(pinned_, memory_, kWorkBytes, stream));
    return device_->copy(memory_, pinned_, kWorkBytes, stream);
  }
  Status hold(HoldWay way, StreamHandle* stream) {
    if (way == HoldWay::kSpin) return spinner_->hold(stream);
    if (way != HoldWay::kNothing) TRY(gate_->hold(stream));
    return {};
  }

  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  std::byte* other_ = nullptr;
  std::byte* pinned_ = nullptr;
  DescribedMemory described_;
  std::byte* other_pinned_ = nullptr;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<Spinner> spinner_;
  std::vector<StreamHandle*> streams_;
};

}  // namespace

Status Signals::send() const {
  const char byte = 1;
  if (::write(to_write, &byte, 1) == 1) return {};
  return Error{Code::kSystemError, "the other side of the measurement is gone"};
}

Status Signals::receive() const {
  char byte = 0;
  if (::read(to_read, &byte, 1) == 1) return {};
  return Error{Code::kSystemError, "the other side of the measurement is gone"};
}

Status hold_streams(const HoldCase& what, const Signals& signals) {
  User user;
  Status held = user.begin(what);
  TRY(signals.receive());
  if (held.ok()) held = user.hold_some(what);
  Status acted;
  std::thread acting([&] {
    if (held.ok()) acted = user.act(what.act);
  });
  // No event tells that the thread is in the driver.
  if (what.act != HoldAct::kNothing) ::poll(nullptr, 0, kIntoTheDriverMs);
  const Status sent = signals.send();
  const Status told = sent.ok() ? signals.receive() : sent;
  const Status ended = user.end();
  acting.join();
  TRY(std::move(held));
  TRY(std::move(acted));
  TRY(told);
  return ended;
}

}  // namespace trestle::perf
