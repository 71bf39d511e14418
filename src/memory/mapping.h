// Mapping: what the kernel has mapped at an address of this process. Any thread.
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

// The mapping that holds the address, with its path; nullopt: there is none. Reads /proc/self/maps. Error: that cannot
// be read.
Result<std::optional<Mapping>> mapping_named(const void* address);

// For repeated queries, without the path. One system call per query where the kernel supports it (Linux 6.11);
// elsewhere as slow as mapping_named(). One thread at a time.
class MappingReader {
 public:
  std::optional<Mapping> at(uintptr_t address);

 private:
  std::optional<Mapping> query(uintptr_t address);
  UniqueFd maps_;
  bool answers_ = true;  // the kernel supports the query
};

// A new descriptor of the file with these numbers, which this process must have open. The file is sealed against
// shrinking, by this call or before. `what` begins the error messages. kInvalidArgument: the file is not open, or it
// cannot be sealed.
Result<UniqueFd> sealed_descriptor(const std::string& what, dev_t device, ino_t inode);

}  // namespace trestle
