// Segment: memory in a memfd that other processes can map. It has no name in any file system, so nothing is left behind
// however a process ends. It is sealed against shrinking, so a mapped page never disappears under a reader.
//
// A forked child does not have the mapping: a communicator's memory ends with the communicator, however long children
// live.
//
// Owned by the code that created or adopted it; one thread at a time. The pages are allocated at creation. So a full
// machine or a memory limit is an error then, and not a SIGBUS later.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() { unmap(); }

  // `bytes` > 0 of zeroed memory, rounded up to pages. `label` is what /proc/PID/maps shows. With `huge`, requests huge
  // pages where the size allows, and aligns to them. kSystemError: a sentence with the size, and the call that the
  // system has refused or the limit that is too low: of the process's files, or of its control group's memory.
  static Result<Segment> create(const char* label, size_t bytes, bool huge);

  // Maps the first `bytes` of a descriptor that a peer sent. kRemoteError if the descriptor is no sealed memory, or is
  // shorter than the peer claimed.
  static Result<Segment> adopt(UniqueFd fd, size_t bytes, bool writable);

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  // To send to peers; -1 after close_fd().
  int fd() const { return fd_.get(); }
  // Makes forked children keep the mapping.
  Status keep_in_children();
  // The mapping stays.
  void close_fd() { fd_.reset(); }

 private:
  void unmap();
  Status map(bool writable, size_t alignment);

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  UniqueFd fd_;
};

// Whether memfd, sealing and mapping work here; otherwise the reason.
Status segment_probe();

// " (the control group allows 512 MiB in all)", or "" if there is no limit.
std::string memory_limit_text();

}  // namespace trestle
