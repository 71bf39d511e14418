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

inline uint64_t sum_of(const BlockList& list) {
  return std::accumulate(list.counts.begin(), list.counts.end(), uint64_t{0});
}

inline CallBytes elements_of_blocks(const PrepareRequest& request, int32_t rank) {
  const UnevenBlocks& blocks = *request.blocks;
  const auto r = static_cast<size_t>(rank);
  switch (request.collective) {
    case Collective::kAllGatherV:
      return {blocks.received.counts[r], request.count};
    case Collective::kReduceScatterV:
      return {request.count, blocks.sent.counts[r]};
    case Collective::kScatterV:
      return {sum_of(blocks.sent), request.count};
    default:  // all-to-all-v, gather-v
      return {request.count, sum_of(blocks.received)};
  }
}

inline CallBytes bytes_of(const PrepareRequest& request, bool sending, int32_t rank, int32_t ranks) {
  const auto n = static_cast<uint64_t>(ranks);
  const bool root = rank == request.root;
  CallBytes elements{request.count, request.count};
  switch (request.collective) {
    case Collective::kAllReduce:
      break;
    case Collective::kReduceScatter:
      elements.given *= request.half ? 1 : n;
      if (request.half) elements.taken = nth_range(request.count, ranks, rank).count;
      break;
    case Collective::kAllGather:
      if (request.half) elements.given = nth_range(request.count, ranks, rank).count;
      elements.taken *= request.half ? 1 : n;
      break;
    case Collective::kBroadcast:
      elements.given *= root ? 1 : 0;
      break;
    case Collective::kReduce:
      elements.taken *= root ? 1 : 0;
      break;
    case Collective::kAllToAll:
      elements = {request.count * n, request.count * n};
      break;
    case Collective::kSendRecv:
      (sending ? elements.taken : elements.given) = 0;
      break;
    case Collective::kBarrier:
      elements = {};
      break;
    case Collective::kGather:
      elements.taken *= root ? n : 0;
      break;
    case Collective::kScatter:
      elements.given *= root ? n : 0;
      break;
    default:
      elements = elements_of_blocks(request, rank);
  }
  return {elements.given * size_of(request.type), elements.taken * size_of(request.type)};
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
