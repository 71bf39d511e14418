// The calls that the perf binaries measure, of one rank in one library: Trestle's, or one that it is compared with.
// They enqueue on the rank's stream.
//
// Used by the thread that drives the rank. A call that fails ends the process with the library's sentence (ending.h).
#pragma once

#include <trestle/trestle.h>

#include <cstddef>

namespace trestle::perf {

class Calls {
 public:
  virtual ~Calls() = default;
  virtual void all_reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op) = 0;
  virtual void all_gather(const void* send, void* recv, size_t count, trestleDataType_t type) = 0;
  virtual void reduce_scatter(const void* send, void* recv, size_t count, trestleDataType_t type,
                              trestleRedOp_t op) = 0;
  virtual void broadcast(const void* send, void* recv, size_t count, trestleDataType_t type, int root) = 0;
  virtual void reduce(const void* send, void* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                      int root) = 0;
  virtual void gather(const void* send, void* recv, size_t count, trestleDataType_t type, int root) = 0;
  virtual void scatter(const void* send, void* recv, size_t count, trestleDataType_t type, int root) = 0;
  virtual void all_to_all(const void* send, void* recv, size_t count, trestleDataType_t type) = 0;
  // Elements to and from each rank; the blocks lie one behind the other.
  virtual void all_to_all_v(const void* send, const size_t* sent, void* recv, const size_t* received,
                            trestleDataType_t type) = 0;
  virtual void send(const void* buffer, size_t count, trestleDataType_t type, int peer) = 0;
  virtual void recv(void* buffer, size_t count, trestleDataType_t type, int peer) = 0;
  // Calls between group_start() and group_end() are enqueued together.
  virtual void group_start() = 0;
  virtual void group_end() = 0;
};

}  // namespace trestle::perf
