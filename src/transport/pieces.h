// Walking through lists of pieces. Pure functions and a cursor; used by the transport that owns the request.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "transport/transport.h"

namespace trestle {

// A place in a list of pieces; `PieceType` is Piece or ConstPiece.
template <class PieceType>
class PieceCursor {
 public:
  PieceCursor() = default;
  explicit PieceCursor(std::span<const PieceType> pieces) : pieces_(pieces) { skip_empty(); }

  bool at_end() const { return index_ == pieces_.size(); }
  // The rest of the current piece; only when not at_end().
  PieceType rest() const {
    return {pieces_[index_].data + offset_, pieces_[index_].bytes - offset_, pieces_[index_].region};
  }
  // The piece `ahead` places after the current one, for gathering; empty beyond the end.
  PieceType peek(size_t ahead) const {
    if (ahead == 0) return at_end() ? PieceType{} : rest();
    return index_ + ahead < pieces_.size() ? pieces_[index_ + ahead] : PieceType{};
  }
  size_t pieces_left() const { return pieces_.size() - index_; }

  void advance(size_t bytes) {
    while (bytes > 0) {
      const size_t step = std::min(bytes, pieces_[index_].bytes - offset_);
      offset_ += step;
      bytes -= step;
      skip_empty();
    }
  }

 private:
  void skip_empty() {
    while (index_ < pieces_.size() && offset_ == pieces_[index_].bytes) {
      ++index_;
      offset_ = 0;
    }
  }

  std::span<const PieceType> pieces_;
  size_t index_ = 0;
  size_t offset_ = 0;
};

template <class PieceType>
size_t total_bytes(std::span<const PieceType> pieces) {
  size_t bytes = 0;
  for (const PieceType& piece : pieces) bytes += piece.bytes;
  return bytes;
}

// Copies as much as both lists hold.
inline void copy_pieces(std::span<const ConstPiece> from, std::span<const Piece> to) {
  PieceCursor<ConstPiece> source(from);
  PieceCursor<Piece> destination(to);
  while (!source.at_end() && !destination.at_end()) {
    const ConstPiece a = source.rest();
    const Piece b = destination.rest();
    const size_t bytes = std::min(a.bytes, b.bytes);
    std::memcpy(b.data, a.data, bytes);
    source.advance(bytes);
    destination.advance(bytes);
  }
}

}  // namespace trestle
