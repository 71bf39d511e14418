// The objects of the public header that the executor uses, with owners that free them, and its results as Status. Each
// object belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/types.h"
#include "trestle/trestle.h"

namespace trestle {

// The sentence is the communicator's if it has failed, else that of the calling thread's last refused call.
Status core_status(trestleResult_t result, trestleComm_t comm);
// A failure with a sentence that was asked for earlier. An aborted communicator has none any more.
Error core_failure(trestleResult_t result, std::string sentence);

inline trestleDataType_t public_type(DataType type) {
  return static_cast<trestleDataType_t>(type);
}

template <class T, trestleResult_t (*End)(T)>
class CoreOwner {
 public:
  CoreOwner() = default;
  explicit CoreOwner(T object) : object_(object) {}
  CoreOwner(CoreOwner&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  CoreOwner& operator=(CoreOwner&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~CoreOwner() {
    if (object_ != nullptr) End(object_);
  }
  T get() const { return object_; }
  T* out() { return &object_; }

 private:
  T object_ = nullptr;
};

using CoreStream = CoreOwner<trestleStream_t, trestleStreamDestroy>;
using CoreEvent = CoreOwner<trestleEvent_t, trestleEventDestroy>;
using CoreRequest = CoreOwner<trestleRequest_t, trestleRequestFree>;
using CoreMemory = CoreOwner<void*, trestleMemFree>;

// `bytes`, rounded up to whole cache lines. Areas of memory that are laid out so share no line, and each begins where
// values of every type are aligned.
constexpr uint64_t whole_lines(uint64_t bytes) {
  constexpr uint64_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace trestle
