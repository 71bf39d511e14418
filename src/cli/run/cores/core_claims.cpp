#include "cli/run/cores/core_claims.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace trestle {

bool CoreClaims::claim(int processor) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = prefix_ + std::to_string(processor);
  const size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::copy_n(name.data(), length, address.sun_path + 1);  // after a zero byte: an abstract name
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return true;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return errno != EADDRINUSE;
  held_.push_back(std::move(socket));
  return true;
}

}  // namespace trestle
