// The structure of the kernel's header has what that of the C library lacks. A file may include only one of them.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "transport/socket/socket.h"

namespace trestle {

SendingCounts sending_counts(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  constexpr size_t kNeeded = offsetof(tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || length < kNeeded) return {};
  const uint64_t waiting_us = std::min(info.tcpi_rwnd_limited, info.tcpi_busy_time);
  return {info.tcpi_bytes_acked, info.tcpi_busy_time - waiting_us, waiting_us, info.tcpi_notsent_bytes};
}

}  // namespace trestle
