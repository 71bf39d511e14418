#include "express/express.h"

#include <algorithm>
#include <cstring>

#include "express/stamp.h"
#include "kernels/scale.h"
#include "sched/model/board_cost.h"

namespace trestle {

namespace {

// Every rank reads the slots of all ranks: beyond this size it reads more than a plan would send.
constexpr uint64_t kMostBytesRead = 64 * 1024;

}  // namespace

Express::Express(std::unique_ptr<Board> board, int32_t rank, int32_t ranks, uint64_t most_bytes)
    : board_(std::move(board)), rank_(rank), ranks_(ranks), most_bytes_(most_bytes), sources_(ranks) {
  ahead_.reserve(64);
}

bool Express::serves(Collective collective, uint64_t count_bytes, bool half) const {
  if (!row_of(collective).over_board || count_bytes > most_bytes_) return false;
  const uint64_t bytes = published_bytes(collective, count_bytes, ranks_, half);
  return bytes <= most_bytes_ && bytes * ranks_ <= kMostBytesRead;
}

bool Express::may_publish(uint64_t sequence) {
  if (sequence < known_floor_ + kBoardSlots) return true;
  uint64_t lowest = UINT64_MAX;
  for (int32_t r = 0; r < ranks_; ++r) lowest = std::min(lowest, r == rank_ ? floor_ : board_->floor(r));
  known_floor_ = lowest;
  return sequence < known_floor_ + kBoardSlots;
}

// Elements of the vector that a reduce-scatter leaves at a rank, or that an all-gather takes from it.
ElementRange Express::shard(const ExpressCall& call, int32_t rank) const {
  return nth_range(call.half ? call.elements : call.elements * ranks_, ranks_, rank);
}

void Express::publish(ExpressCall& call) {
  const std::byte* data = call.send;
  uint64_t bytes = published_bytes(call.collective, call.bytes, ranks_, call.half);
  if (row_of(call.collective).sent.at_root_only && rank_ != call.root) bytes = 0;
  if (call.half && !reduces(call.collective)) {
    data += shard(call, rank_).offset * size_of(call.spec.type);
    bytes = shard(call, rank_).count * size_of(call.spec.type);
  }
  std::byte* const payload = board_->my_payload(call.sequence);
  if (call.factor != nullptr) {
    scale(payload, data, bytes / size_of(call.spec.type), call.spec.type, call.factor);
  } else if (bytes != 0) {
    std::memcpy(payload, data, bytes);
  }
  board_->publish(call.sequence, floor_, stamp_of(call));
  call.published = true;
}

bool Express::poll(ExpressCall& call) {
  if (!call.published) {
    if (!may_publish(call.sequence)) return false;
    publish(call);
  }
  const uint64_t stamp = stamp_of(call);
  while (call.arrived < ranks_) {
    if (call.arrived != rank_) {
      const Board::Arrival arrival = board_->arrived(call.arrived, call.sequence, stamp);
      if (arrival != Board::Arrival::kHere) {
        if (arrival == Board::Arrival::kOther) call.dissenter = call.arrived;
        return false;
      }
    }
    ++call.arrived;
  }
  combine(call);
  completed(call.sequence);
  return true;
}

int32_t Express::awaited(const ExpressCall& call) const {
  return call.published ? call.arrived : Doorbells::kAnything;
}

bool Express::can_go_on(const ExpressCall& call) {
  if (!call.published) return may_publish(call.sequence);
  if (call.arrived == ranks_ || call.arrived == rank_) return true;
  return board_->arrived(call.arrived, call.sequence, stamp_of(call)) != Board::Arrival::kNotYet;
}

int32_t Express::awaited_rank(const ExpressCall& call) const {
  if (call.published) return call.arrived < ranks_ && call.arrived != rank_ ? call.arrived : -1;
  for (int32_t r = 0; r < ranks_; ++r) {
    if (r != rank_ && call.sequence >= board_->floor(r) + kBoardSlots) return r;
  }
  return -1;
}

Express::Other Express::run_by_dissenter(const ExpressCall& call) const {
  return other_by_stamp(call, board_->stamp(call.dissenter, call.sequence));
}

void Express::reduce(const ExpressCall& call, uint64_t offset, uint64_t elements, std::byte* recv) {
  if (elements == 0) return;
  for (int32_t r = 0; r < ranks_; ++r) sources_[r] = board_->payload(r, call.sequence) + offset;
  call.reduce(recv, sources_, elements, call.spec);
}

void Express::combine(const ExpressCall& call) {
  // Nothing to move; buffers of no bytes may be null.
  if (call.bytes == 0 || !moves_data(call.collective)) return;
  const CollectiveRow& row = row_of(call.collective);
  if (row.received.at_root_only && rank_ != call.root) return;
  if (row.reduces) {
    combine_sums(call);
  } else {
    combine_copies(call);
  }
}

// Combines all elements or, if there is a block per rank, this rank's block.
void Express::combine_sums(const ExpressCall& call) {
  if (row_of(call.collective).sent.extent != BufferExtent::kCountPerRank) {
    return reduce(call, 0, call.elements, call.recv);
  }
  const ElementRange mine = shard(call, rank_);
  const uint64_t offset = mine.offset * size_of(call.spec.type);
  reduce(call, offset, mine.count, call.recv + (call.half ? offset : 0));
}

// Copies the root's part for this rank, or the parts of all ranks.
void Express::combine_copies(const ExpressCall& call) {
  const CallBuffer& sent = row_of(call.collective).sent;
  const uint64_t mine = sent.extent == BufferExtent::kCountPerRank ? rank_ * call.bytes : 0;
  if (sent.at_root_only) {
    std::memcpy(call.recv, board_->payload(call.root, call.sequence) + mine, call.bytes);
    return;
  }
  const uint64_t element_bytes = size_of(call.spec.type);
  for (int32_t r = 0; r < ranks_; ++r) {
    const ElementRange part = shard(call, r);
    std::memcpy(call.recv + part.offset * element_bytes, board_->payload(r, call.sequence) + mine,
                part.count * element_bytes);
  }
}

void Express::completed(uint64_t sequence) {
  if (sequence != floor_) {
    ahead_.push_back(sequence);
    return;
  }
  ++floor_;
  for (size_t i = 0; i < ahead_.size();) {
    if (ahead_[i] != floor_) {
      ++i;
      continue;
    }
    ahead_[i] = ahead_.back();
    ahead_.pop_back();
    ++floor_;
    i = 0;
  }
  board_->set_floor(floor_);
}

}  // namespace trestle
