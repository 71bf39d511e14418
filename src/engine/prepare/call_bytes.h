// How much data a call moves on one rank. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "engine/prepare/layout.h"
#include "engine/prepare/prepared.h"

namespace trestle {

struct CallBytes {
  uint64_t given = 0;  // bytes of the send buffer that this rank's part of the call reads
  uint64_t taken = 0;  // bytes of the receive buffer that it writes
};

// What a rank gives and takes, in elements.
struct CallElements {
  uint64_t sent = 0;
  uint64_t received = 0;
};

inline uint64_t sum_of(const BlockList& list) {
  return std::accumulate(list.counts.begin(), list.counts.end(), uint64_t{0});
}

// Of one buffer; `sent`: of the send buffer. Not for a half of a separated all-reduce.
inline uint64_t elements_of_buffer(const PrepareRequest& request, bool sent, int32_t rank, int32_t ranks) {
  const CollectiveRow& row = row_of(request.collective);
  const CallBuffer& buffer = sent ? row.sent : row.received;
  if (buffer.at_root_only && rank != request.root) return 0;
  switch (buffer.extent) {
    case BufferExtent::kNone:
      return 0;
    case BufferExtent::kCount:
      return request.count;
    case BufferExtent::kCountPerRank:
      return request.count * static_cast<uint64_t>(ranks);
    case BufferExtent::kList:
      return sum_of(sent ? request.blocks->sent : request.blocks->received);
    case BufferExtent::kOwnBlock:
      return (sent ? request.blocks->received : request.blocks->sent).counts[static_cast<size_t>(rank)];
  }
  return 0;
}

inline CallElements elements_of(const PrepareRequest& request, bool sending, int32_t rank, int32_t ranks) {
  const bool message = is_point_to_point(request.collective);
  const bool sends = !message || sending;
  const bool receives = !message || !sending;
  return {sends ? elements_of_buffer(request, true, rank, ranks) : 0,
          receives ? elements_of_buffer(request, false, rank, ranks) : 0};
}

inline CallBytes bytes_of(const PrepareRequest& request, bool sending, int32_t rank, int32_t ranks) {
  const uint64_t size = size_of(request.type);
  if (request.half) {
    const uint64_t shard = nth_range(request.count, ranks, rank).count;
    const bool first = reduces(request.collective);
    return {(first ? request.count : shard) * size, (first ? shard : request.count) * size};
  }
  const CallElements elements = elements_of(request, sending, rank, ranks);
  return {elements.sent * size, elements.received * size};
}

// How far the buffers of a call reach from their start, holes included: at least as far as bytes_of().
inline uint64_t reach_of(const BlockList& list) {
  uint64_t end = 0;
  for (size_t r = 0; r < list.counts.size(); ++r) end = std::max(end, list.starts[r] + list.counts[r]);
  return end;
}
inline CallBytes reach_of(const PrepareRequest& request, bool sending, int32_t rank, int32_t ranks) {
  CallBytes bytes = bytes_of(request, sending, rank, ranks);
  const uint64_t size = size_of(request.type);
  if (request.half) return {request.count * size, request.count * size};
  if (request.blocks) {
    bytes.given = std::max(bytes.given, reach_of(request.blocks->sent) * size);
    bytes.taken = std::max(bytes.taken, reach_of(request.blocks->received) * size);
  }
  return bytes;
}

}  // namespace trestle
