// A backend: one library whose collectives are measured, with the ranks that one thread drives, their streams and
// buffers. The first one of a run is Trestle's; others are compared with it.
//
// Owned and used by the thread that drives the ranks. Constructing, destroying and enqueueing is collective over all
// threads of all processes. A failed call ends the process with a sentence (ending.h).
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "perf/backend/calls.h"
#include "perf/backend/graphs.h"
#include "perf/driver/buffer.h"
#include "perf/driver/collective.h"

namespace trestle::perf {

// A rank's two buffers in a backend. `send` and `recv` are their memory, before -u is applied.
struct RankBuffers {
  Buffer send_buffer;
  Buffer recv_buffer;
  char* send = nullptr;
  char* recv = nullptr;
};
// Buffers of `bytes`, and room for `unalign` elements of 8 bytes.
RankBuffers make_rank_buffers(const Source& source, size_t bytes, int unalign, Access& access);

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;  // of the table's column
  virtual size_t count() const = 0;      // ranks of this thread
  virtual Calls& calls(size_t i) = 0;    // of the thread's i-th rank, whose number is rank(i)
  virtual int rank(size_t i) const = 0;
  // Calls of all ranks between group_start() and group_end() are enqueued together.
  virtual void group_start() = 0;
  virtual void group_end() = 0;
  // Creates every rank's operator for a pre-multiplied sum of this type, and destroys the previous one.
  virtual void use_mul_sum(trestleDataType_t type) = 0;
  virtual trestleRedOp_t mul_sum(size_t i) const = 0;
  // Waits for everything enqueued.
  virtual void wait() = 0;
  // Of the streams of this thread's ranks. Only where these are of GPUs.
  virtual Graphs& graphs() = 0;
  virtual void wait_for_launches() = 0;

  // Allocates each rank's two buffers of `bytes`, and room for -u elements of 8 bytes. Called once. An allocation on a
  // GPU may wait for the GPU's work, so no rank makes another call before all ranks have returned.
  virtual void allocate(size_t bytes) = 0;
  virtual RankBuffers& buffers(size_t i) = 0;
  virtual Access& access(size_t i) = 0;  // to these buffers
  // Why this library cannot do rows of this kind, as a sentence; "": it can. The same answer on all ranks.
  virtual std::string lacks(const Collective& collective, trestleDataType_t type, trestleRedOp_t op) const = 0;
  // Whether the result of a call in place is defined.
  virtual bool has_result_in_place(const Collective& collective) const = 0;
};

}  // namespace trestle::perf
