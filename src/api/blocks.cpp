// The C API: reads and checks the blocks that the callers of v-variants describe.
#include "api/blocks.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "api/errors.h"

namespace trestle {

namespace {

// Two arrays of a caller, with their names.
struct Given {
  const char* counts_name;
  const size_t* counts;
  const char* displs_name;
  const size_t* displs;
};

std::string element(const char* name, size_t index, uint64_t value) {
  // Signed, so that a caller who subtracted too much recognises the number.
  return std::string(name) + "[" + std::to_string(index) + "] is " + std::to_string(static_cast<int64_t>(value));
}

Result<BlockList> read_list(const std::string& in, const Given& given, size_t ranks, uint64_t element_bytes) {
  if (given.counts == nullptr) return invalid_argument(in + given.counts_name + " is NULL");
  const uint64_t most = kMostBytes / element_bytes;
  BlockList list;
  uint64_t packed = 0;
  for (size_t r = 0; r < ranks; ++r) {
    const uint64_t count = given.counts[r];
    const uint64_t start = given.displs != nullptr ? given.displs[r] : packed;
    if (count > SIZE_MAX / 2) return invalid_argument(in + element(given.counts_name, r, count) + ": negative");
    // The displacement of a block without elements is ignored.
    if (count != 0 && start > SIZE_MAX / 2)
      return invalid_argument(in + element(given.displs_name, r, start) + ": negative");
    if (count > most || packed > most - count || (count != 0 && start > most - count)) {
      return invalid_argument(in + "the block of rank " + std::to_string(r) + ", count " + std::to_string(count) +
                              " at " + std::to_string(start) + ", overflows the size of a buffer");
    }
    packed += count;
    list.counts.push_back(count);
    list.starts.push_back(count != 0 ? start : 0);
  }
  return list;
}

std::string block_text(const BlockList& list, size_t r) {
  return std::to_string(r) + " (elements " + std::to_string(list.starts[r]) + " to " +
         std::to_string(list.starts[r] + list.counts[r] - 1) + ")";
}

// If two blocks overlapped, the result would depend on which of them arrives last.
Status check_disjoint(const std::string& in, const BlockList& list) {
  std::vector<size_t> order;
  for (size_t r = 0; r < list.counts.size(); ++r) {
    if (list.counts[r] != 0) order.push_back(r);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return list.starts[a] < list.starts[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    const size_t before = order[i - 1];
    if (list.starts[before] + list.counts[before] <= list.starts[order[i]]) continue;
    const auto [a, b] = std::minmax(before, order[i]);
    return invalid_argument(in + "the receive blocks of ranks " + block_text(list, a) + " and " + block_text(list, b) +
                            " overlap");
  }
  return {};
}

Result<BlockList> read_received(const std::string& in, const RawCall& raw, size_t ranks, uint64_t element_bytes) {
  const bool both = raw.collective == Collective::kAllToAllV;
  auto list = TRY(
      read_list(in, {"recvcounts", raw.recvcounts, both ? "rdispls" : "displs", raw.rdispls}, ranks, element_bytes));
  if (raw.collective != Collective::kReduceScatterV) TRY(check_disjoint(in, list));
  return list;
}

Result<BlockList> read_sent(const std::string& in, const RawCall& raw, size_t ranks, uint64_t element_bytes) {
  const bool both = raw.collective == Collective::kAllToAllV;
  return read_list(in, {"sendcounts", raw.sendcounts, both ? "sdispls" : "displs", raw.sdispls}, ranks, element_bytes);
}

Status check_own(const std::string& in, const char* name, uint64_t own, const char* list_name, const BlockList& list,
                 size_t rank) {
  if (own == list.counts[rank]) return {};
  return invalid_argument(in + name + " is " + std::to_string(own) + ", but " +
                          element(list_name, rank, list.counts[rank]) + ", and that is this rank's own block");
}

// Memory of one buffer, in bytes.
struct Span {
  const std::byte* begin;
  const std::byte* end;
};

void add_spans(std::vector<Span>& spans, const void* buffer, const BlockList& list, const BlockList& otherwise,
               uint64_t size) {
  const BlockList& used = list.counts.empty() ? otherwise : list;
  for (size_t r = 0; r < used.counts.size(); ++r) {
    if (used.counts[r] == 0) continue;
    const std::byte* begin = static_cast<const std::byte*>(buffer) + used.starts[r] * size;
    spans.push_back({begin, begin + used.counts[r] * size});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

bool meet(const std::vector<Span>& sent, const std::vector<Span>& received) {
  size_t r = 0;
  for (const Span& s : sent) {  // what is received does not overlap itself
    while (r < received.size() && received[r].end <= s.begin) ++r;
    if (r < received.size() && received[r].begin < s.end) return true;
  }
  return false;
}

}  // namespace

Status read_blocks(const Communicator& communicator, const char* function, const RawCall& raw,
                   PrepareRequest& request) {
  const std::string in = std::string(function) + ": ";
  const auto ranks = static_cast<size_t>(communicator.ranks());
  const auto rank = static_cast<size_t>(communicator.rank());
  const uint64_t size = size_of(request.type);
  const bool root = communicator.rank() == request.root;
  if (raw.count > SIZE_MAX / 2 || raw.count > kMostBytes / size) {
    return invalid_argument(in + "count " + std::to_string(static_cast<int64_t>(raw.count)) +
                            " is negative or overflows the size of a buffer");
  }
  UnevenBlocks blocks;
  request.count = raw.count;
  switch (raw.collective) {
    case Collective::kAllGatherV:
      blocks.received = TRY(read_received(in, raw, ranks, size));
      TRY(check_own(in, "sendcount", raw.count, "recvcounts", blocks.received, rank));
      request.count = sum_of(blocks.received);
      break;
    case Collective::kReduceScatterV:
      blocks.sent = TRY(read_received(in, raw, ranks, size));
      request.count = sum_of(blocks.sent);
      break;
    case Collective::kAllToAllV:
      blocks.sent = TRY(read_sent(in, raw, ranks, size));
      blocks.received = TRY(read_received(in, raw, ranks, size));
      TRY(check_own(in, ("sendcounts[" + std::to_string(rank) + "]").c_str(), blocks.sent.counts[rank], "recvcounts",
                    blocks.received, rank));
      request.count = sum_of(blocks.sent);
      break;
    case Collective::kGatherV:
      if (!root) break;
      blocks.received = TRY(read_received(in, raw, ranks, size));
      TRY(check_own(in, "sendcount", raw.count, "recvcounts", blocks.received, rank));
      break;
    case Collective::kScatterV:
      if (!root) break;
      blocks.sent = TRY(read_sent(in, raw, ranks, size));
      TRY(check_own(in, "recvcount", raw.count, "sendcounts", blocks.sent, rank));
      break;
    default:
      return {};
  }
  request.blocks = SharedBlocks(std::move(blocks));
  return {};
}

CallElements extent_of(const Communicator& communicator, const Call& call) {
  const PrepareRequest& r = call.request;
  if (r.half) return {r.count, r.count};
  return elements_of(r, call.sending, communicator.rank(), communicator.ranks());
}

namespace {

const char* in_place_text(const PrepareRequest& request) {
  return request.half ? "send == recv" : row_of(request.collective).in_place;
}

std::string buffer_text(const void* buffer, uint64_t bytes) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "(%llu bytes at %p)", static_cast<unsigned long long>(bytes), buffer);
  return text.data();
}

Error overlap(const char* function, const Call& call, const CallElements& extent) {
  const uint64_t size = size_of(call.request.type);
  return invalid_argument(std::string(function) + ": the send buffer " + buffer_text(call.send, extent.sent * size) +
                          " and the receive buffer " + buffer_text(call.recv, extent.received * size) +
                          " overlap, and not as a call in place has them: " + in_place_text(call.request));
}

// For unequal blocks, which may have gaps between them.
bool blocks_overlap(const Call& call, const CallElements& extent) {
  const PrepareRequest& r = call.request;
  std::vector<Span> from;
  std::vector<Span> to;
  add_spans(from, call.send, r.blocks->sent, {{extent.sent}, {0}}, size_of(r.type));
  add_spans(to, call.recv, r.blocks->received, {{extent.received}, {0}}, size_of(r.type));
  return meet(from, to);
}

}  // namespace

Status check_overlap(const char* function, const Call& call, const CallElements& extent) {
  const PrepareRequest& r = call.request;
  if (r.in_place && r.collective == Collective::kAllToAllV && r.blocks->sent != r.blocks->received) {
    return invalid_argument(std::string(function) +
                            ": in place, what is sent and what is received must be the same blocks: sendcounts and "
                            "sdispls equal to recvcounts and rdispls");
  }
  if (r.in_place || extent.sent == 0 || extent.received == 0) return {};
  if (r.blocks) return blocks_overlap(call, extent) ? Status(overlap(function, call, extent)) : Status();
  const auto send = reinterpret_cast<uintptr_t>(call.send);
  const auto recv = reinterpret_cast<uintptr_t>(call.recv);
  const uint64_t size = size_of(r.type);
  if (send + extent.sent * size <= recv || recv + extent.received * size <= send) [[likely]]
    return {};
  return overlap(function, call, extent);
}

}  // namespace trestle
