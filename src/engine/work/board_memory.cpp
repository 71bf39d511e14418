#include "engine/work/board_memory.h"

#include <new>

namespace trestle {

Result<std::shared_ptr<BoardMemory>> BoardMemory::create(Device& device, int32_t ranks, uint64_t most_bytes) {
  std::shared_ptr<BoardMemory> made(new BoardMemory(device));
  TRY(made->prepare(kernels::board_bytes(most_bytes, static_cast<uint64_t>(ranks))));
  return made;
}

// Kernels of other ranks may write as soon as these know of the memory, so it is cleared before.
Status BoardMemory::prepare(uint64_t bytes) {
  control_ = new (TRY(device_.allocate_pinned(sizeof(kernels::BoardControl)))) kernels::BoardControl();
  memory_ = TRY(device_.allocate(bytes));
  StreamHandle* const stream = TRY(device_.make_stream(false));
  Status cleared = device_.fill(memory_, std::byte{0}, bytes, stream);
  if (cleared.ok()) cleared = device_.synchronize(stream);
  const Status destroyed = device_.destroy_stream(stream);
  return cleared.ok() ? destroyed : cleared;
}

// A device that fails here has failed its users already.
BoardMemory::~BoardMemory() {
  [[maybe_unused]] Status ended;
  if (memory_ != nullptr) ended = device_.free(memory_);
  if (control_ != nullptr) ended = device_.free_pinned(reinterpret_cast<std::byte*>(control_));
}

}  // namespace trestle
