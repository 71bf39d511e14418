// Where the buffers of a call lie, for communicators with a device. The others never ask.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "memory/place.h"

namespace trestle {

struct UsedBuffer {
  const char* name;  // "send"
  const void* begin = nullptr;
  uint64_t bytes = 0;  // that the call reads or writes at most
};

struct CallPlace {
  MemoryPlace place = MemoryPlace::kHost;
  // On a device: other devices that have peer access to it can read all of the buffers, too. False for memory of pools
  // and of virtual addresses, whose owner gives access to each device by itself, and for host and managed memory.
  bool open_to_devices = false;
};

// Device: at least one buffer is memory of `device`. Host: each is ordinary, pinned or managed memory. Pinned and
// managed memory goes with either. The call touches at least one of them. Errors (kInvalidArgument), which begin with
// the buffer: memory of another device, not all of it in one allocation, memory that is not there; one buffer of the
// device and one of ordinary memory. The device must have been opened. Any thread.
Result<CallPlace> place_of(int device, const UsedBuffer& send, const UsedBuffer& recv);

}  // namespace trestle
