// A rank's send or receive buffer: where its memory comes from, and how the host gets at what is in it. Owned and used
// by the thread that drives the rank.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace trestle::perf {

// -R. Registered memory, and that of trestleMemAlloc, is mapped from a memfd, so that peers on the host can map it.
enum class BufferKind { kOrdinary = 0, kRegistered = 1, kAllocated = 2 };

// Where memory comes from and goes back to. allocate ends the program with a sentence if there is none.
struct Source {
  std::function<char*(size_t bytes)> allocate;
  std::function<void(char* memory, size_t bytes)> free;
};
// Of this process alone, page aligned.
Source ordinary_memory();
// Of a memfd, page aligned. claim: called while the memfd's descriptor is still open, as a registration needs.
using Claim = std::function<void(char* memory, size_t bytes)>;
Source shared_memory(const Claim& claim = {});

// How the host reads and writes memory. Each call is complete when it returns.
class Access {
 public:
  virtual ~Access() = default;
  virtual bool is_direct() const = 0;  // the host may use the addresses
  virtual void zero(char* at, size_t bytes) = 0;
  virtual void write(char* to, const void* from, size_t bytes) = 0;
  virtual void read(void* to, const char* from, size_t bytes) = 0;
};
std::unique_ptr<Access> host_access();

class Buffer {
 public:
  Buffer() = default;
  // Zeroed: the first touch must not be measured.
  Buffer(const Source& source, size_t bytes, Access& access);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  char* data() const { return data_; }

 private:
  Source source_;
  size_t bytes_ = 0;  // whole pages
  char* data_ = nullptr;
};

}  // namespace trestle::perf
