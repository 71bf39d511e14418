// Memory for boards of devices (engine/work/board_memory.h) whose ranks are in several processes.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/device/device_use.h"
#include "comm/device/process_memory.h"
#include "device/device.h"
#include "engine/work/board_memory.h"
#include "memory/segment.h"

namespace trestle {

// What other processes need to open the memory of a rank. Plain bytes when it travels.
struct BoardAddress {
  MemoryAddress memory;  // words and lines
  MemoryAddress page;    // of the segment; `probe`: where in it the page is
  uint32_t lending = 0;  // how often the memory was lent, with this time
};
std::string encode(const BoardAddress& address);
// kRemoteError: it is no such address.
Result<BoardAddress> decode_board_address(const std::string& text);

// BoardStore: such memory of one device. Where it is shared by tickets, CUDA leaves open what happens to kernels of
// another process when memory that they write is freed, so it stays to the end of the process, and is lent to one
// communicator after the other: again only when every rank of another process has said that its kernels write there no
// more (BoardMemory::leave()). A rank that was killed says nothing, nor does one whose device has not come to a kernel
// when the communicator fails; then the memory stays as it is. Memory by a descriptor is freed instead: those who have
// it open keep it.
//
// Owned by its opened device, which is never destroyed. Any thread.
class BoardStore {
 public:
  explicit BoardStore(Device& device) : device_(device) {}
  struct Lent {
    std::shared_ptr<BoardMemory> memory;  // cleared; the last pointer gives it back
    BoardAddress address;
    int descriptor = -1;  // by which peers open it, if so; the memory has it
  };
  // For a board of `ranks` ranks whose calls have blocks of most_bytes bytes at most. others: bit r: rank r is in
  // another process. by: as for allocate_shared(). Slow. Errors: the driver's; without memory, or where memory cannot
  // be shared.
  Result<Lent> lend(int32_t ranks, uint64_t most_bytes, uint32_t others, SharedBy by);

 private:
  static constexpr size_t kPages = 32;  // of a segment
  struct Pages {
    Segment segment;
    size_t used = 0;
  };
  struct Page {
    const Segment* segment = nullptr;
    size_t number = 0;
    BoardPage& board() const;
  };
  struct Kept {
    SharedMemory shared;  // none: it was freed, and ranks of other processes may still write to the page
    uint64_t nonce = fresh_nonce();
    Page page;
    uint32_t others = 0;
    uint32_t lending = 0;
    bool lent = false;
  };
  void free_abandoned();
  Kept* take_free(uint64_t bytes, SharedBy by);
  bool take_page_again(Kept& kept);
  Result<Kept*> make(uint64_t bytes, SharedBy by);
  Result<Page> take_page();
  static bool is_left(const Kept& kept);
  static BoardAddress address_of(const Kept& kept);
  void take_back(Kept& kept);

  Device& device_;
  Mutex mutex_;  // never held while the driver is called
  std::list<Pages> pages_ TRESTLE_GUARDED_BY(mutex_);
  std::list<Kept> kept_ TRESTLE_GUARDED_BY(mutex_);
};

// Opens the memory of a rank of another process for kernels of this device. descriptor: as for OpenedMemory::open().
// Slow. Errors: the driver's, such as that of devices without a path to each other; the operating system's;
// kRemoteError: it is shorter than the peer says. The device outlives the result.
Result<std::shared_ptr<BoardMemory>> open_board(DeviceUse& use, const BoardAddress& address,
                                                const UniqueFd& descriptor);

}  // namespace trestle
