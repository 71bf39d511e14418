// Work: one task on data in memory, such as folding received data into this rank's block.
//
// A step of a phase fills it in under the progress lock. do_work() does it on the calling thread; a WorkQueue does it
// later. Until it is done it must not move, and the data that it points to must not change.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "engine/prepare/custom_op.h"
#include "kernels/reduce.h"
#include "transport/transport.h"

namespace trestle {

enum class WorkKind : uint8_t {
  kCopy,    // the only source to the destination
  kReduce,  // all sources, in their order, by the library's own loop
  kFold,    // all sources, in their order, by a user-defined function, which may take any time and may fail
  kScale,   // the only source times `factor`
};

enum class WorkState : uint8_t { kIdle, kSubmitted, kDone };

struct Work {
  WorkKind kind = WorkKind::kCopy;
  uint64_t bytes = 0;         // of the destination, and so of each source
  uint32_t source_count = 1;  // also where nothing is touched
  // Nothing is touched where the destination is empty: simulations without data still count time.
  std::span<const Piece> destination;
  std::span<const std::span<const ConstPiece>> sources;
  ReduceSpec spec;                  // all kinds but kCopy; `type` is that of the elements
  ReduceFunction reduce = nullptr;  // kReduce
  const CustomOp* user = nullptr;   // kFold
  const void* factor = nullptr;     // kScale: one element

  WorkState state = WorkState::kIdle;  // written under the progress lock, by submit() and poll() of a queue
  // Written by the thread that does it, before the state becomes kDone. Only a user-defined function, or lack of
  // memory, gives an error.
  Status result;
  bool* touched = nullptr;  // RecvRequest::touched
  // Of what stays within memory of devices, and of what reads host memory; only of a DeviceQueue's work.
  ReadTimes ended;
  Work* next = nullptr;  // in a queue's list
};

// Does it on this thread. Does not change the state. Throws std::bad_alloc if it has very many sources.
Status do_work(const Work& work);

}  // namespace trestle
