#include "torture/call.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "torture/random.h"

namespace torture {
namespace {

constexpr const char* kNames[] = {"allreduce",  "reducescatter",  "allgather", "broadcast", "reduce",
                                  "alltoall",   "sendrecv",       "barrier",   "gather",    "scatter",
                                  "allgatherv", "reducescatterv", "alltoallv", "gatherv",   "scatterv"};

size_t sum_before(const std::vector<size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, size_t{0});
}

// The displacements of blocks of these lengths. Empty: one after the other. Otherwise in a seeded order with seeded
// gaps.
std::vector<size_t> displacements(const Call& call, int rank, const std::vector<size_t>& counts, uint64_t side) {
  std::vector<size_t> displs;
  if (!call.gaps) return displs;
  Random random(mix(call.seed, static_cast<uint64_t>(rank), 77 + side));
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  displs.resize(counts.size());
  size_t at = random.below(3);
  for (const size_t block : order) {
    // The displacement of an empty block has no effect.
    const bool anything = counts[block] == 0 && call.in_place == 0 && random.one_in(3);
    displs[block] = anything ? size_t{1} << 40 : at;
    at += counts[block] + random.below(4);
  }
  return displs;
}

size_t place(const std::vector<size_t>& displs, const std::vector<size_t>& counts, int rank) {
  return displs.empty() ? sum_before(counts, rank) : displs[static_cast<size_t>(rank)];
}

Side whole(size_t count, int source, size_t start = 0) {
  return {true, count, {{0, count, source, start}}};
}

void add(Side& side, const Piece& piece) {
  side.used = true;
  if (piece.count == 0) return;
  side.extent = std::max(side.extent, piece.at + piece.count);
  side.pieces.push_back(piece);
}

// One block per rank, each from element 0 of the rank's input.
Side blocks_of_all(size_t count, int ranks) {
  Side side;
  for (int r = 0; r < ranks; ++r) add(side, {static_cast<size_t>(r) * count, count, r, 0});
  return side;
}

Side blocks_of_all(const std::vector<size_t>& counts, const std::vector<size_t>& displs) {
  Side side;
  for (int r = 0; r < static_cast<int>(counts.size()); ++r) {
    add(side, {place(displs, counts, r), counts[static_cast<size_t>(r)], r, 0});
  }
  return side;
}

Shape even_shape(const Call& call, int rank, int ranks) {
  const size_t n = call.count;
  const size_t mine = static_cast<size_t>(rank) * n;
  const size_t all = static_cast<size_t>(ranks) * n;
  const bool root = rank == call.root;
  Shape shape;
  switch (call.collective) {
    case trestleCollAllReduce:
      return {whole(n, rank), whole(n, kReduced), 0, 0, {}, {}, {}, {}};
    case trestleCollReduce:
      return {whole(n, rank), root ? whole(n, kReduced) : Side{}, 0, 0, {}, {}, {}, {}};
    case trestleCollReduceScatter:
      return {whole(all, rank), whole(n, kReduced, mine), 0, mine, {}, {}, {}, {}};
    case trestleCollAllGather:
      return {whole(n, rank), blocks_of_all(n, ranks), mine, 0, {}, {}, {}, {}};
    case trestleCollBroadcast:
      return {root ? whole(n, rank) : Side{}, whole(n, call.root), 0, 0, {}, {}, {}, {}};
    case trestleCollGather:
      return {whole(n, rank), root ? blocks_of_all(n, ranks) : Side{}, mine, 0, {}, {}, {}, {}};
    case trestleCollScatter:
      return {root ? whole(all, rank) : Side{}, whole(n, call.root, mine), 0, mine, {}, {}, {}, {}};
    case trestleCollSendRecv:
      return {root ? whole(n, rank) : Side{}, rank == call.peer ? whole(n, call.root) : Side{}, 0, 0, {}, {}, {}, {}};
    case trestleCollAllToAll:
      shape.send = whole(all, rank);
      for (int r = 0; r < ranks; ++r) add(shape.recv, {static_cast<size_t>(r) * n, n, r, mine});
      return shape;
    default:
      return shape;
  }
}

Shape all_to_all_v(const Call& call, int rank, int ranks) {
  Shape shape;
  const auto length = [&](int from, int to) { return call.counts[static_cast<size_t>(from * ranks + to)]; };
  // Block p of a rank's input begins after the elements of its earlier blocks, wherever they are placed.
  const auto start = [&](int from, int to) {
    size_t before = 0;
    for (int p = 0; p < to; ++p) before += length(from, p);
    return before;
  };
  for (int p = 0; p < ranks; ++p) {
    shape.sendcounts.push_back(length(rank, p));
    shape.recvcounts.push_back(length(p, rank));
  }
  const bool in_place = in_place_on(call, rank);
  shape.sdispls = displacements(call, rank, shape.sendcounts, 0);
  shape.rdispls = in_place ? shape.sdispls : displacements(call, rank, shape.recvcounts, 1);
  for (int p = 0; p < ranks; ++p) {
    add(shape.send, {place(shape.sdispls, shape.sendcounts, p), length(rank, p), rank, start(rank, p)});
    add(shape.recv, {place(shape.rdispls, shape.recvcounts, p), length(p, rank), p, start(p, rank)});
  }
  return shape;
}

Shape vector_shape(const Call& call, int rank, int ranks) {
  if (call.collective == trestleCollAllToAllV) return all_to_all_v(call, rank, ranks);
  const size_t mine = call.counts[static_cast<size_t>(rank)];
  const size_t before = sum_before(call.counts, rank);
  const bool root = rank == call.root;
  Shape shape;
  if (call.collective == trestleCollReduceScatterV) {
    shape.recvcounts = call.counts;
    shape.send = whole(sum_before(call.counts, ranks), rank);
    shape.recv = whole(mine, kReduced, before);
    shape.recv_at = before;
    return shape;
  }
  const std::vector<size_t> displs = displacements(call, rank, call.counts, 0);
  if (call.collective == trestleCollScatterV) {
    shape.sendcounts = call.counts;
    shape.sdispls = displs;
    for (int r = 0; root && r < ranks; ++r) {
      add(shape.send,
          {place(displs, call.counts, r), call.counts[static_cast<size_t>(r)], rank, sum_before(call.counts, r)});
    }
    shape.recv = whole(mine, call.root, before);
    shape.recv_at = place(displs, call.counts, rank);
    return shape;
  }
  shape.recvcounts = call.counts;
  shape.rdispls = displs;
  shape.send = whole(mine, rank);
  if (call.collective == trestleCollAllGatherV || root) shape.recv = blocks_of_all(call.counts, displs);
  shape.send_at = place(displs, call.counts, rank);
  return shape;
}

}  // namespace

bool is_vector(trestleCollective_t collective) {
  return collective >= trestleCollAllGatherV;
}

bool is_rooted(trestleCollective_t c) {
  return c == trestleCollBroadcast || c == trestleCollReduce || c == trestleCollGather || c == trestleCollScatter ||
         c == trestleCollGatherV || c == trestleCollScatterV;
}

bool reduces(trestleCollective_t c) {
  return c == trestleCollAllReduce || c == trestleCollReduce || c == trestleCollReduceScatter ||
         c == trestleCollReduceScatterV;
}

std::string to_string(const Call& call) {
  std::ostringstream out;
  out << "call " << call.id << ": " << kNames[call.collective] << " on comm " << call.comm << " stream " << call.stream
      << ", " << elements::format_of(call.type).name;
  if (reduces(call.collective)) out << " " << name(call.op) << (call.exact ? "" : " of arbitrary floats");
  if (is_rooted(call.collective)) out << ", root " << call.root;
  if (call.collective == trestleCollSendRecv) out << ", from " << call.root << " to " << call.peer;
  if (is_vector(call.collective)) {
    out << ", counts";
    for (const size_t count : call.counts) out << " " << count;
    out << (call.gaps ? " with gaps" : "");
  } else {
    out << ", count " << call.count;
  }
  if (call.in_place != 0) out << (call.in_place == 1 ? ", in place" : ", in place on some");
  if (call.config != 0) out << ", configuration " << call.config;
  return out.str();
}

Values values_of(const Call& call, int ranks) {
  return {call.type, call.op, call.of_result || reduces(call.collective), call.exact, call.seed, ranks};
}

bool in_place_on(const Call& call, int rank) {
  if (call.in_place == 2 && mix(call.seed, 5, static_cast<uint64_t>(rank)) % 2 == 0) return false;
  if (call.in_place == 0) return false;
  const bool root_only = call.collective == trestleCollReduce || call.collective == trestleCollGather ||
                         call.collective == trestleCollScatter || call.collective == trestleCollGatherV ||
                         call.collective == trestleCollScatterV;
  return !root_only || rank == call.root;
}

Shape shape_of(const Call& call, int rank, int ranks) {
  Shape shape = is_vector(call.collective) ? vector_shape(call, rank, ranks) : even_shape(call, rank, ranks);
  if (!call.of_result) return shape;
  for (Piece& piece : shape.send.pieces) piece.source = kReduced;
  for (Piece& piece : shape.recv.pieces) piece.source = kReduced;
  return shape;
}

size_t largest_bytes(const Call& call, int ranks) {
  size_t most = 0;
  for (int r = 0; r < ranks; ++r) {
    const Shape shape = shape_of(call, r, ranks);
    most = std::max({most, shape.send.extent, shape.recv.extent});
  }
  return most * size_of(call.type);
}

}  // namespace torture
