#include "perf/backend/backend.h"

namespace trestle::perf {

RankBuffers make_rank_buffers(const Source& source, size_t bytes, int unalign, Access& access) {
  const size_t padded = bytes + static_cast<size_t>(unalign) * 8 + 1;
  RankBuffers buffers;
  buffers.send_buffer = Buffer(source, padded, access);
  buffers.recv_buffer = Buffer(source, padded, access);
  buffers.send = buffers.send_buffer.data();
  buffers.recv = buffers.recv_buffer.data();
  return buffers;
}

}  // namespace trestle::perf
