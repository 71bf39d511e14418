// The structure of the kernel's header has what that of the C library lacks. A file may include only one of them.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

#include "transport/socket/socket.h"

namespace trestle {

SendingRate sending_rate(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_delivery_rate) + sizeof info.tcpi_delivery_rate;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < kNeeded) return {};
  return {static_cast<double>(info.tcpi_delivery_rate), info.tcpi_notsent_bytes};
}

}  // namespace trestle
