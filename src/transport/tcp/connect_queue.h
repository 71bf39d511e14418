// ConnectQueue: which of a rail's outgoing connections may be made now. If all ranks of a large job talk to all others
// at once, unlimited attempts wear each other down: every handshake waits behind thousands of others, runs into time
// limits, and is begun again.
//
// At most kMostAtOnce attempts count at a time. One that has not ended within kSlowNs counts no longer: its peer may be
// frozen, and must not keep this rank from the others. Bookkeeping only, no descriptors; owned by a TcpRail, its
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace trestle {

class ConnectQueue {
 public:
  static constexpr size_t kMostAtOnce = 8;
  static constexpr int64_t kSlowNs = 2'000'000'000;

  // Whether an attempt to reach the rank may begin now; it counts from then on. Otherwise the rank waits in line.
  // It must be neither in line nor under way.
  bool begin(int32_t rank, int64_t now_ns);
  // Its attempt has ended, or its place in line is not needed any more. Any rank.
  void end(int32_t rank);
  // The next in line, if it may begin now; it counts from then on.
  std::optional<int32_t> next(int64_t now_ns);
  bool empty() const { return line_.empty(); }
  // When next() has something at the latest: INT64_MAX if nobody waits in line.
  int64_t due_ns() const;

 private:
  struct Attempt {
    int32_t rank;
    int64_t began_ns;
  };
  bool has_room(int64_t now_ns);

  std::vector<Attempt> counted_;  // oldest first
  std::deque<int32_t> line_;
};

}  // namespace trestle
