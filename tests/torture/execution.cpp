#include "torture/execution.h"

#include <algorithm>
#include <cstring>

#include "torture/random.h"

namespace torture {
namespace {

constexpr uint64_t kContextMagic = 0x7074757265;

}  // namespace

Execution::Execution(const Call& call, int rank, int ranks, Arenas& arenas, const Execution* first)
    : call_(call),
      rank_(rank),
      ranks_(ranks),
      first_(first),
      in_place_(first == nullptr && in_place_on(call, rank)),
      shape_(shape_of(call, rank, ranks)) {
  place_buffers(arenas);
  if (placed_) refill();
}

Buffer Execution::buffer(Arenas& arenas, size_t elements, uint64_t side) {
  const uint64_t h = mix(call_.seed, static_cast<uint64_t>(rank_), 100 + side);
  const size_t size = size_of(call_.type);
  Arena& arena = *arenas[h % kMemories];
  // Most buffers begin at a multiple of 64, the others at any multiple of the element's size.
  const size_t shift = h / 8 % 2 == 0 ? 0 : size * (1 + h / 16 % 31);
  Buffer buffer;
  buffer.bytes = elements * size;
  buffer.filler = static_cast<uint8_t>(0x81 + h / 1024 % 100);
  buffer.data = arena.take(buffer.bytes, shift);
  placed_ = placed_ && buffer.data != nullptr;
  return buffer;
}

void Execution::place_buffers(Arenas& arenas) {
  if (in_place_) {
    const size_t extent = std::max(shape_.send_at + shape_.send.extent, shape_.recv_at + shape_.recv.extent);
    send_ = buffer(arenas, extent, 0);
    return;
  }
  if (shape_.send.used && first_ == nullptr) send_ = buffer(arenas, shape_.send.extent, 0);
  if (shape_.recv.used) recv_ = buffer(arenas, shape_.recv.extent, 1);
}

const std::vector<uint8_t>& Execution::values(int source) {
  std::vector<uint8_t>& table = tables_[source];
  if (!table.empty()) return table;
  size_t most = 1;
  for (const Side* side : {&shape_.send, &shape_.recv}) {
    for (const Piece& piece : side->pieces) most = std::max(most, piece.start + piece.count);
  }
  return table = torture::table(values_of(call_, ranks_), source, most);
}

// Writes the piece's expected elements. `to` is the place of the first one.
void Execution::paint(uint8_t* to, const Piece& piece) {
  if (piece.count == 0) return;
  const std::vector<uint8_t>& source = values(piece.source);
  const size_t size = size_of(call_.type);
  size_t from = piece.start % kPeriod;
  for (size_t left = piece.count; left > 0; from = 0) {
    const size_t now = std::min(left, source.size() / size - from);
    std::memcpy(to, source.data() + from * size, now * size);
    to += now * size;
    left -= now;
  }
}

void Execution::refill() {
  const size_t size = size_of(call_.type);
  send_.wipe();
  recv_.wipe();
  if (first_ != nullptr || send_.data == nullptr) return;
  const size_t at = in_place_ ? shape_.send_at : 0;
  for (const Piece& piece : shape_.send.pieces) paint(send_.data + (at + piece.at) * size, piece);
}

AnyCall Execution::made() const {
  const size_t size = size_of(call_.type);
  AnyCall made{call_.collective, send_.data, recv_.data, call_.count, call_.type, op_, call_.root};
  if (in_place_) {
    made.send = send_.data + shape_.send_at * size;
    made.recv = send_.data + shape_.recv_at * size;
  }
  if (first_ != nullptr) made.send = first_->in_place_ ? first_->send_.data : first_->recv_.data;
  if (!is_vector(call_.collective)) return made;
  if (call_.collective != trestleCollAllToAllV) made.count = call_.counts[static_cast<size_t>(rank_)];
  made.sendcounts = shape_.sendcounts.data();
  made.sdispls = shape_.sdispls_or_null();
  made.recvcounts = shape_.recvcounts.data();
  made.rdispls = shape_.rdispls_or_null();
  return made;
}

trestleResult_t Execution::start(trestleComm_t comm, trestleStream_t stream) {
  const AnyCall call = made();
  if (call_.collective != trestleCollSendRecv) return ::start(call, comm, stream);
  if (rank_ == call_.root) {
    const trestleResult_t result = trestleSend(call.send, call.count, call.type, call_.peer, comm, stream);
    if (result != trestleSuccess) return result;
  }
  if (rank_ != call_.peer) return trestleSuccess;
  return trestleRecv(call.recv, call.count, call.type, call_.root, comm, stream);
}

trestleResult_t Execution::init(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  return ::init(made(), comm, stream, request);
}

trestleResult_t Execution::init_halves(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
  const AnyCall call = made();
  return trestleAllReduceStartInit(call.send, call.recv, call.count, call.type, call.op, comm, stream, request);
}

trestleResult_t Execution::make_operator(trestleComm_t comm) {
  if (!reduces(call_.collective)) return trestleSuccess;
  if (call_.op < Op::kScaledSum) {
    op_ = static_cast<trestleRedOp_t>(call_.op);
    return trestleSuccess;
  }
  own_op_ = true;
  if (call_.op == Op::kScaledSum) {
    scalar_ = scalar(values_of(call_, ranks_), rank_);
    const auto when = call_.seed % 2 == 0 ? trestleScalarDevice : trestleScalarHostImmediate;
    return trestleRedOpCreatePreMulSum(&op_, &scalar_, call_.type, when, comm);
  }
  context_ = {kContextMagic, call_.op, call_.type};
  const trestleReduceFunction_t fold = [](void* dst, const void* const* sources, int k, size_t count, trestleDataType_t,
                                          void* context) {
    const Context& c = *static_cast<const Context*>(context);
    if (c.magic != kContextMagic || k < 2) return 1;
    for (size_t i = 0; i < count; ++i) {
      uint64_t bits = load(c.type, sources[0], i);
      for (int s = 1; s < k; ++s) bits = user_fold(c.op, c.type, bits, load(c.type, sources[s], i));
      store(c.type, dst, i, bits);
    }
    return 0;
  };
  return trestleRedOpCreate(&op_, fold, &context_, call_.op == Op::kXor ? 1 : 0, comm);
}

trestleResult_t Execution::drop_operator(trestleComm_t comm) {
  if (!own_op_) return trestleSuccess;
  own_op_ = false;
  return trestleRedOpDestroy(op_, comm);
}

// Results without a reference are copied into the image and added to the checksum.
void Execution::paint_expected(std::vector<uint8_t>& image, size_t at, const Piece& piece, const uint8_t* actual) {
  const size_t size = size_of(call_.type);
  uint8_t* const to = image.data() + kGuardBytes + (at + piece.at) * size;
  if (call_.exact || piece.source != kReduced) return paint(to, piece);
  std::memcpy(to, actual + (at + piece.at) * size, piece.count * size);
  for (size_t i = 0; i < piece.count; ++i) checksum_ = mix(checksum_, load(call_.type, to, i));
}

std::string Execution::compare(const char* which, const Buffer& buffer, std::vector<uint8_t> image) const {
  if (buffer.data == nullptr) return "";
  std::string wrong = buffer.difference(image);
  if (wrong.empty()) return "";
  // A maximum may return any NaN.
  const size_t size = size_of(call_.type);
  for (size_t i = 0; i * size < buffer.bytes; ++i) {
    const uint64_t is = load(call_.type, buffer.data, i);
    uint8_t* const expected = image.data() + kGuardBytes;
    if (is_nan(call_.type, is) && is_nan(call_.type, load(call_.type, expected, i))) store(call_.type, expected, i, is);
  }
  if ((call_.op == Op::kMax || call_.op == Op::kMin) && values_of(call_, ranks_).reduces)
    wrong = buffer.difference(image);
  if (wrong.empty()) return "";
  return to_string(call_) + (in_place_ ? " (in place here)" : "") + " on rank " + std::to_string(rank_) + ": " + which +
         " buffer: " + wrong;
}

std::string Execution::verify() {
  checksum_ = 0;
  const size_t size = size_of(call_.type);
  std::vector<uint8_t> send = send_.image();
  const size_t send_at = in_place_ ? shape_.send_at : 0;
  if (send_.data != nullptr && first_ == nullptr) {
    for (const Piece& piece : shape_.send.pieces) paint(send.data() + kGuardBytes + (send_at + piece.at) * size, piece);
  }
  if (in_place_) {
    for (const Piece& piece : shape_.recv.pieces) paint_expected(send, shape_.recv_at, piece, send_.data);
    return compare("the", send_, std::move(send));
  }
  std::vector<uint8_t> recv = recv_.image();
  if (recv_.data != nullptr) {
    for (const Piece& piece : shape_.recv.pieces) paint_expected(recv, 0, piece, recv_.data);
  }
  const std::string wrong = compare("receive", recv_, std::move(recv));
  return wrong.empty() ? compare("send", send_, std::move(send)) : wrong;
}

std::string Execution::verify_shard(const std::vector<trestleRange_t>& ranges) {
  if (!call_.exact) return "";
  const size_t size = size_of(call_.type);
  const uint8_t* const recv = in_place_ ? send_.data : recv_.data;
  for (const trestleRange_t& range : ranges) {
    std::vector<uint8_t> expected(range.count * size);
    paint(expected.data(), {0, range.count, kReduced, range.offset});
    for (size_t i = 0; i < range.count; ++i) {
      const uint64_t is = load(call_.type, recv, range.offset + i);
      const uint64_t must = load(call_.type, expected.data(), i);
      if (is == must || (is_nan(call_.type, is) && is_nan(call_.type, must))) continue;
      return to_string(call_) + " on rank " + std::to_string(rank_) + ": element " + std::to_string(range.offset + i) +
             " of the shard is wrong after the first half";
    }
  }
  return "";
}

void Execution::replace_shard(const std::vector<trestleRange_t>& ranges) {
  uint8_t* const recv = in_place_ ? send_.data : recv_.data;
  for (const trestleRange_t& range : ranges) {
    paint(recv + range.offset * size_of(call_.type), {0, range.count, kReplaced - rank_, range.offset});
  }
}

void Execution::expect_replaced(const std::vector<std::vector<trestleRange_t>>& ranges_of_ranks) {
  shape_.recv.pieces.clear();
  for (int r = 0; r < ranks_; ++r) {
    for (const trestleRange_t& range : ranges_of_ranks[static_cast<size_t>(r)]) {
      shape_.recv.pieces.push_back({range.offset, range.count, kReplaced - r, range.offset});
    }
  }
}

}  // namespace torture
