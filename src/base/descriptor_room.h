// DescriptorRoom: many descriptors that an object will open. While it exists, the process may have them open at the
// same time as those of all other rooms, if the system allows it: the soft limit of open files (ulimit -n), mostly
// 1024, is raised where it is too low, up to the hard limit.
//
// The limit stays raised afterwards, because the user's own files may depend on it by then. It is the user's: as long
// as everything fits, nothing changes it. Value type; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/result.h"

namespace trestle {

class DescriptorRoom {
 public:
  DescriptorRoom() = default;
  explicit DescriptorRoom(size_t count);
  ~DescriptorRoom();
  DescriptorRoom(DescriptorRoom&& other) noexcept
      : count_(std::exchange(other.count_, 0)), shortage_(std::move(other.shortage_)) {}
  DescriptorRoom& operator=(DescriptorRoom&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(shortage_, other.shortage_);
    return *this;
  }

  size_t count() const { return count_; }
  // "": they all fit. Else the end of a sentence: "10000 open files may be needed, and ulimit -n is 4096, its hard
  // limit 4096".
  const std::string& shortage() const { return shortage_; }

 private:
  size_t count_ = 0;
  std::string shortage_;
};

// Makes room for descriptors that are about to be opened. kSystemError if they do not fit with those that are open now:
// "`what` needs 9 more open files, and 1020 are open: ulimit -n is 1024, its hard limit 1024". Any thread.
Status make_descriptor_room(const std::string& what, size_t count);

}  // namespace trestle
