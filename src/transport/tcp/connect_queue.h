// ConnectQueue: which of a rail's outgoing connections may be made now. If all ranks of a large job talk to all others
// at once, unlimited attempts wear each other down: every handshake waits behind thousands of others, runs into time
// limits, and is begun again.
//
// At most kMostAtOnce attempts count at a time. A peer that is frozen, or busy outside the library, answers late or
// never, and must not keep this rank from the others. How far its attempt has got does not tell such a peer from an
// overloaded one: the kernel of either accepts the connection, and its process is silent. Nor does the time that has
// passed: on an overloaded machine every handshake takes seconds. The other attempts tell more. An attempt counts no
// longer
//
// * when kOvertakenBy attempts that began later have been answered: its peer is slower than others;
// * when it is the oldest, and nobody has answered for kQuietNs. One place per kQuietNs: an overloaded rank that hears
//   nothing for long begins as few attempts as if each counted for kMostAtOnce * kQuietNs = 2 s.
//
// So peers that do not answer cost the others kQuietNs once. Then one place serves all others in turn, and soon the
// rest of the places is free as well. Bookkeeping only, no descriptors; owned by a TcpRail, its thread.
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
  static constexpr size_t kOvertakenBy = 8;
  static constexpr int64_t kQuietNs = 250'000'000;

  // Whether an attempt to reach the rank may begin now; it counts from then on. Otherwise the rank waits in line.
  // It must be neither in line nor under way.
  bool begin(int32_t rank, int64_t now_ns);
  // Its attempt has ended because the peer has answered. Any rank.
  void answered(int32_t rank, int64_t now_ns);
  // Its attempt has ended in another way, or its place in line is not needed any more. Any rank.
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
    size_t overtaken;  // by so many
  };
  int64_t room_ns() const;
  bool has_room(int64_t now_ns);

  std::vector<Attempt> counted_;  // oldest first
  std::deque<int32_t> line_;
  int64_t heard_ns_ = 0;  // when a counted attempt was answered last, or the oldest one lost its place
};

}  // namespace trestle
