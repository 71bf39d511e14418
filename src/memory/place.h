// MemoryPlace: where the data of a rank lies, and the rules that follow from the place and not from a transport.
//
// Constants; any thread.
#pragma once

#include <cstdint>

namespace trestle {

enum class MemoryPlace : uint8_t {
  kHost,
  kDevice,  // memory of a device, or of what stands for one: work on it is submitted to a queue, which takes time
};

// Where a rank's data of one operation lies, as the ranks compare it.
enum class DataPlace : uint8_t {
  kHost,
  kDevice,
  kNone,  // nowhere: this rank neither gives nor takes anything
};

// Ranks with data must have it in the same place.
constexpr bool goes_with(DataPlace a, DataPlace b) {
  return a == b || a == DataPlace::kNone || b == DataPlace::kNone;
}
constexpr const char* to_string(DataPlace place) {
  switch (place) {
    case DataPlace::kHost:
      return "in host memory";
    case DataPlace::kDevice:
      return "in device memory";
    case DataPlace::kNone:
      return "without data";
  }
  return "in an unknown place";  // as a peer may say
}

struct PlaceFacts {
  const char* name;
  uint64_t
      segment_bytes;  // most bytes of a segment of a long block; 0: as the transport prefers, for the host's caches
};

// Host: a segment stays in the cache from the copy to the reduction. Device: beginning a piece of work costs
// microseconds, in which the device reduces megabytes, and there is no such cache.
inline constexpr PlaceFacts kPlaces[] = {{"host", 0}, {"device", uint64_t{4} << 20}};

constexpr const PlaceFacts& facts_of(MemoryPlace place) {
  return kPlaces[static_cast<uint8_t>(place)];
}

// Most bytes of a segment of data that lies there, over a transport that prefers `by_transport`.
constexpr uint64_t most_segment_bytes(MemoryPlace place, uint64_t by_transport) {
  const uint64_t own = facts_of(place).segment_bytes;
  return own != 0 ? own : by_transport;
}

}  // namespace trestle
