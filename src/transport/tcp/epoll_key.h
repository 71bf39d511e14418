// The key of an epoll event of the tcp transport: what it concerns. Plain values.
#pragma once

#include <cstdint>

namespace trestle {

enum class EpollKind : uint32_t { kListener, kStranger, kOutgoing, kConnected, kTimer };

// `number`: a stranger's serial, or a rank.
constexpr uint64_t epoll_key(EpollKind kind, uint32_t number) {
  return static_cast<uint64_t>(kind) << 32 | number;
}
constexpr EpollKind kind_of(uint64_t key) {
  return static_cast<EpollKind>(key >> 32);
}
constexpr uint32_t number_of(uint64_t key) {
  return static_cast<uint32_t>(key);
}

}  // namespace trestle
