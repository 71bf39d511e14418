// Resources that cannot be had, one at a time: large blocks of the heap (for partial results and early messages),
// memory that processes share, and descriptors (of sockets, events, shared memory, and copies). A small allocation that
// fails is no fault to survive.
//
// fault_points.cpp replaces the functions of the whole program, the library's included, that get them. Only threads and
// calls of the library count: a thread of the test is exempt except inside counted().
#pragma once

#include <array>

namespace faults {

enum class Kind { kBlock, kSharedMemory, kDescriptor };
inline constexpr std::array<Kind, 3> kKinds{Kind::kBlock, Kind::kSharedMemory, Kind::kDescriptor};
const char* name_of(Kind kind);

// The request of that kind after `before` others fails, once. Replaces an earlier fault.
void arm(Kind kind, long before);
// No request fails any more. Returns whether one has failed since arm().
bool disarm();

// From now on this thread is the test's.
void exempt_this_thread();
// Inside `call` this thread is the library's.
void set_counted(bool counted);
template <class F>
auto counted(F&& call) {
  set_counted(true);
  const auto result = call();
  set_counted(false);
  return result;
}

}  // namespace faults
