// Mapping: what the kernel says is mapped at an address of this process. Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t offset = 0;  // of `begin` in the file
  dev_t device = 0;
  ino_t inode = 0;  // 0: no file
  bool writable = false;
  bool shared = false;
  std::string path;  // as /proc shows it; by mapping_named() only
};

// The mapping that holds the address, with its path; nothing: none does. Reads /proc/self/maps. Errors: it cannot be
// read.
Result<std::optional<Mapping>> mapping_named(const void* address);

// The same again and again, without the path. One system call per question where the kernel can answer it (Linux 6.11);
// elsewhere as slow as mapping_named(). One thread at a time.
class MappingReader {
 public:
  std::optional<Mapping> at(uintptr_t address);

 private:
  std::optional<Mapping> query(uintptr_t address);
  UniqueFd maps_;
  bool answers_ = true;  // the kernel has the question
};

// A new descriptor of the file with these numbers that this process has open, sealed against shrinking by this call or
// before; `what` begins the sentences. kInvalidArgument: none is open, or it cannot be sealed.
Result<UniqueFd> sealed_descriptor(const std::string& what, dev_t device, ino_t inode);

}  // namespace trestle
