#include "support/pretend_device.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <deque>
#include <new>
#include <vector>

#include "base/check.h"
#include "support/delayed_queue.h"

namespace trestle {

namespace {

constexpr uint64_t kAlignment = 64;

std::atomic<int> held{0};
std::atomic<bool> go_on{false};

void reduce_when_let(std::byte* dst, std::span<const std::byte* const> sources, size_t elements,
                     const ReduceSpec& spec) {
  held.fetch_add(1);
  while (!go_on.load()) ::sched_yield();
  held.fetch_sub(1);
  find_reduce(spec.type, spec.op)(dst, sources, elements, spec);
}

// Submits a copy of each work, whose pieces lie where its thread reaches them.
class PretendQueue : public WorkQueue {
 public:
  PretendQueue(PretendDevice& device, std::unique_ptr<DelayedQueue> queue)
      : device_(device), queue_(std::move(queue)) {}

  void submit(Work& work) override {
    CHECK(work.kind != WorkKind::kFold, "a device runs no user-defined function");
    Submitted& submitted = submitted_.emplace_back();
    submitted.original = &work;
    submitted.work = work;
    for (const Piece& piece : work.destination) {
      submitted.write.push_back({device_.reached(piece.data, piece.bytes, piece.region, true), piece.bytes, nullptr});
    }
    for (const auto& source : work.sources) {
      auto& read = submitted.read.emplace_back();
      for (const ConstPiece& piece : source) {
        read.push_back({device_.reached(piece.data, piece.bytes, piece.region, false), piece.bytes, nullptr});
      }
    }
    submitted.sources.assign(submitted.read.begin(), submitted.read.end());
    submitted.work.destination = submitted.write;
    submitted.work.sources = submitted.sources;
    submitted.work.touched = nullptr;
    if (work.kind == WorkKind::kReduce && device_.holds_reductions()) submitted.work.reduce = reduce_when_let;
    queue_->submit(submitted.work);
    work.state = WorkState::kSubmitted;
  }
  bool poll() override {
    if (!queue_->poll()) return false;
    while (!submitted_.empty() && submitted_.front().work.state == WorkState::kDone) {
      Work& original = *submitted_.front().original;
      original.result = submitted_.front().work.result;
      original.state = WorkState::kDone;
      submitted_.pop_front();
    }
    return true;
  }
  int event_fd() const override { return queue_->event_fd(); }
  bool prepare_sleep() override { return queue_->prepare_sleep(); }
  void finish_sleep() override { queue_->finish_sleep(); }
  bool close(int64_t give_up_ns) override { return queue_->close(give_up_ns); }

 private:
  struct Submitted {
    Work work;
    Work* original = nullptr;
    std::vector<Piece> write;
    std::vector<std::vector<ConstPiece>> read;
    std::vector<std::span<const ConstPiece>> sources;
  };

  PretendDevice& device_;
  std::deque<Submitted> submitted_;
  const std::unique_ptr<DelayedQueue> queue_;  // ends before the works do
};

class PretendMemory : public MemorySource {
 public:
  PretendMemory(PretendDevice& device, bool pinned) : device_(device), pinned_(pinned) {}
  std::byte* allocate(uint64_t bytes) override {
    return pinned_ ? device_.allocate_pinned(bytes) : device_.allocate(bytes);
  }
  void free(std::byte* memory) override { pinned_ ? device_.free_pinned(memory) : device_.free(memory); }

 private:
  PretendDevice& device_;
  const bool pinned_;
};

bool covers(const std::map<const std::byte*, uint64_t>& blocks, const std::byte* memory, uint64_t bytes) {
  auto after = blocks.upper_bound(memory);
  if (after == blocks.begin()) return false;
  const auto& [begin, size] = *--after;
  const auto offset = static_cast<uint64_t>(memory - begin);
  return offset <= size && bytes <= size - offset;
}

}  // namespace

PretendDevice::PretendDevice(int32_t number)
    : number_(number), file_(UniqueFd::open([] { return memfd_create("device", MFD_CLOEXEC); })) {
  CHECK(file_ && ftruncate(file_.get(), kBytes) == 0, "no memory for a pretended device");
  const auto map = [this](int access) {
    void* const memory = mmap(nullptr, kBytes, access, MAP_SHARED, file_.get(), 0);
    CHECK(memory != MAP_FAILED, "the memory of a pretended device cannot be mapped");
    return static_cast<std::byte*>(memory);
  };
  guarded_ = map(PROT_NONE);
  real_ = map(PROT_READ | PROT_WRITE);
}

PretendDevice::~PretendDevice() {
  munmap(guarded_, kBytes);
  munmap(real_, kBytes);
}

DevicePlace PretendDevice::place(uint64_t seed, int64_t most_delay_ns) {
  DevicePlace place;
  place.device = number_;
  place.work = std::make_unique<PretendQueue>(*this, DelayedQueue::create(seed, most_delay_ns).value());
  place.memory = std::make_unique<PretendMemory>(*this, false);
  place.pinned = std::make_unique<PretendMemory>(*this, true);
  return place;
}

// The first gap that is long enough.
std::byte* PretendDevice::allocate(uint64_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const MutexLock lock(mutex_);
  std::byte* at = guarded_;
  for (const auto& [begin, size] : device_) {
    if (static_cast<uint64_t>(begin - at) >= bytes) break;
    at = guarded_ + (begin - guarded_) + size;
  }
  if (static_cast<uint64_t>(at - guarded_) + bytes > kBytes) return nullptr;
  device_[at] = bytes;
  return at;
}

void PretendDevice::free(std::byte* memory) {
  const MutexLock lock(mutex_);
  CHECK(device_.erase(memory) == 1, "device memory was freed twice");
}

bool PretendDevice::owns(const std::byte* memory, uint64_t bytes) const {
  return memory >= guarded_ && memory + bytes <= guarded_ + kBytes;
}

void PretendDevice::let_reductions_go_on() {
  go_on.store(true);
}

int PretendDevice::held_reductions() {
  return held.load();
}

void PretendDevice::revoke() {
  CHECK(mprotect(real_, kBytes, PROT_NONE) == 0, "the memory of a pretended device cannot be revoked");
}

size_t PretendDevice::blocks() {
  const MutexLock lock(mutex_);
  return device_.size() + pinned_.size();
}

std::byte* PretendDevice::allocate_pinned(uint64_t bytes) {
  auto* const memory = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
  const MutexLock lock(mutex_);
  pinned_[memory] = bytes;
  return memory;
}

void PretendDevice::free_pinned(std::byte* memory) {
  {
    const MutexLock lock(mutex_);
    CHECK(pinned_.erase(memory) == 1, "pinned memory was freed twice");
  }
  ::operator delete (memory, std::align_val_t{kAlignment});
}

size_t PretendDevice::pinned_blocks() {
  const MutexLock lock(mutex_);
  return pinned_.size();
}

void PretendDevice::reach(PretendDevice& other, bool memory) {
  reached_.push_back({&other, memory});
}

std::byte* PretendDevice::reached(const std::byte* data, uint64_t bytes, const Region* region, bool writes) {
  CHECK(region != nullptr, "work whose region does not say where it lies");
  const auto lies_here = [&](PretendDevice& device, bool memory) -> std::byte* {
    if (memory && device.owns(data, bytes)) {
      CHECK(region->device == device.number(), "device memory whose region does not say so");
      return device.bytes_of(data);
    }
    return region->device == kHostMemory && device.is_pinned(data, bytes) ? const_cast<std::byte*>(data) : nullptr;
  };
  if (std::byte* const own = lies_here(*this, true)) return own;
  for (const Reached& other : reached_) {
    std::byte* const there = lies_here(*other.device, other.memory);
    if (there == nullptr) continue;
    CHECK(!writes, "work that writes memory of another device");
    return there;
  }
  CHECK(false, "work on memory that the device does not reach");
  return nullptr;
}

bool PretendDevice::is_pinned(const std::byte* memory, uint64_t bytes) {
  const MutexLock lock(mutex_);
  return covers(pinned_, memory, bytes);
}

}  // namespace trestle
