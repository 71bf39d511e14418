// A rank's send or receive buffer, in the kind of memory that -R selects. Owns it; used by the thread that drives the
// rank.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>

namespace trestle::perf {

// -R. Registered memory is mapped from a memfd, so peers on the host can map it; so is that of trestleMemAlloc.
enum class BufferKind { kOrdinary = 0, kRegistered = 1, kAllocated = 2 };

class Buffer {
 public:
  Buffer() = default;
  // Zeroed, touched, page aligned. Ends the program with a sentence if there is no memory. Must not outlive comm.
  Buffer(BufferKind kind, size_t bytes, trestleComm_t comm);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  char* data() const { return data_; }

 private:
  BufferKind kind_ = BufferKind::kOrdinary;
  size_t bytes_ = 0;  // whole pages
  trestleComm_t comm_ = nullptr;
  void* registration_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace trestle::perf
