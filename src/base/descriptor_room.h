// DescriptorRoom: many descriptors that an object will open. While it exists, the process may have them open at the
// same time as those of all other rooms, if the system allows it: the soft limit of open files (ulimit -n), mostly
// 1024, is raised where it is too low, up to the hard limit.
//
// The limit stays raised afterwards, because the user's own files may depend on it by then. Few descriptors leave it
// alone: a small job needs no more than any program, and the limit is the user's. Value type; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace trestle {

class DescriptorRoom {
 public:
  // All rooms of a process together that need no more than this do not change the limit.
  static constexpr size_t kFew = 256;

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
  // "": they all fit. Else the end of a sentence: "10000 open files may be needed, and the hard limit is 4096 (ulimit
  // -Hn)".
  const std::string& shortage() const { return shortage_; }

 private:
  size_t count_ = 0;
  std::string shortage_;
};

}  // namespace trestle
