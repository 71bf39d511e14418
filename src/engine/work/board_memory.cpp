#include "engine/work/board_memory.h"

#include <new>

namespace trestle {

// Kernels of other ranks may write as soon as these know of the memory, so it is cleared before.
Result<std::shared_ptr<BoardMemory>> BoardMemory::create(Device& device, std::byte* memory, uint64_t bytes,
                                                         std::byte* page, std::shared_ptr<const void> held) {
  auto* const words = new (page) BoardPage();
  TRY(clear_board(device, memory, bytes));
  return std::make_shared<BoardMemory>(memory, *words, 1, std::move(held));
}

Status clear_board(Device& device, std::byte* memory, uint64_t bytes) {
  StreamHandle* const stream = TRY(device.make_stream(true));
  Status cleared = device.fill(memory, std::byte{0}, bytes, stream);
  if (cleared.ok()) cleared = device.synchronize(stream);
  const Status destroyed = device.destroy_stream(stream);
  return cleared.ok() ? destroyed : cleared;
}

}  // namespace trestle
