#include "engine/work/board_memory.h"

#include <new>

namespace trestle {

namespace {

struct OwnedMemory {
  explicit OwnedMemory(Device& of) : device(of) {}
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;
  // A device that fails here has failed its users already.
  ~OwnedMemory() {
    [[maybe_unused]] Status ended;
    if (memory != nullptr) ended = device.free(memory);
    if (page != nullptr) ended = device.free_pinned(reinterpret_cast<std::byte*>(page));
  }

  Device& device;
  std::byte* memory = nullptr;
  BoardPage* page = nullptr;
};

}  // namespace

// Kernels of other ranks may write as soon as these know of the memory, so it is cleared before.
Result<std::shared_ptr<BoardMemory>> BoardMemory::create(Device& device, int32_t ranks, uint64_t most_bytes) {
  const uint64_t bytes = kernels::board_bytes(most_bytes, static_cast<uint64_t>(ranks));
  auto owned = std::make_shared<OwnedMemory>(device);
  owned->page = new (TRY(device.allocate_pinned(sizeof(BoardPage)))) BoardPage();
  owned->memory = TRY(device.allocate(bytes));
  TRY(clear_board(device, owned->memory, bytes));
  return std::make_shared<BoardMemory>(owned->memory, *owned->page, 1, owned);
}

Status clear_board(Device& device, std::byte* memory, uint64_t bytes) {
  StreamHandle* const stream = TRY(device.make_stream(false));
  Status cleared = device.fill(memory, std::byte{0}, bytes, stream);
  if (cleared.ok()) cleared = device.synchronize(stream);
  const Status destroyed = device.destroy_stream(stream);
  return cleared.ok() ? destroyed : cleared;
}

}  // namespace trestle
