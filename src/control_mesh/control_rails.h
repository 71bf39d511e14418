// ControlRails: where a control mesh makes its connections, and the rails over which it may make them anew.
//
// Made by the code that knows the rails; owned by the mesh and used under its mutex, on any thread. Nothing here
// blocks. `rail` counts this rank's own rails. The listeners are open as long as the object lives: a rank whose process
// lives listens at all of them. So where connections were possible before, a refused one says that the process is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/auth/handshake.h"

namespace trestle {

class ControlRails {
 public:
  virtual ~ControlRails() = default;
  // Of this rank, for the handshakes.
  virtual Credentials credentials() const = 0;
  virtual size_t count() const = 0;
  virtual std::string name(size_t rail) const = 0;  // "eth1"
  virtual int listener(size_t rail) const = 0;
  // The rails that lead to a rank. Fewer than two: its connections stay where they are.
  virtual std::vector<size_t> rails_to(int32_t rank) const = 0;
  // The places where a rank listens, for its first connection: their names, and a socket that is connecting with one.
  virtual std::vector<std::string> places(int32_t rank) const = 0;
  virtual Result<UniqueFd> dial_place(int32_t rank, size_t place) = 0;
  // A socket that is connecting with the rank over that rail.
  virtual Result<UniqueFd> dial(int32_t rank, size_t rail) = 0;
  // A connection over that rail carries the mesh from now on.
  virtual void adopt(int fd, size_t rail) = 0;
  // What to call the rail of a connection that was not made here: "eth0", else its address.
  virtual std::string rail_of(int fd) const = 0;
};

}  // namespace trestle
