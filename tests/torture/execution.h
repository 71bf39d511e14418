// A call on one rank with its buffers: fills them before the call and checks every byte of them afterwards.
#pragma once

#include <trestle/trestle.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/any_call.h"
#include "torture/call.h"
#include "torture/memory.h"

namespace torture {

using Arenas = std::array<std::unique_ptr<Arena>, kMemories>;

class Execution {
 public:
  // first: the finished or pending call whose receive buffer this one sends from.
  Execution(const Call& call, int rank, int ranks, Arenas& arenas, const Execution* first = nullptr);
  // Whether the arenas had enough room.
  bool placed() const { return placed_; }
  const Call& call() const { return call_; }

  // The caller's operators are made before the call and may be destroyed directly after it.
  trestleResult_t make_operator(trestleComm_t comm);
  trestleResult_t drop_operator(trestleComm_t comm);
  trestleResult_t start(trestleComm_t comm, trestleStream_t stream);
  trestleResult_t init(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
  // Makes an all-reduce in two halves.
  trestleResult_t init_halves(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
  // The call with its arguments on this rank.
  AnyCall made() const;
  // Restores the contents before the call, so that it may run again.
  void refill();

  // Checks every byte of both buffers, including guard zones. "" or the error.
  std::string verify();
  // Of results without a reference. All ranks of an all-reduce and all repetitions of the job get the same one.
  uint64_t checksum() const { return checksum_; }

  // Between the halves of a decomposed all-reduce: compares this rank's shard, then writes new values into it.
  std::string verify_shard(const std::vector<trestleRange_t>& ranges);
  void replace_shard(const std::vector<trestleRange_t>& ranges);
  // From now on the receive buffer must hold the values that the ranks wrote into their shards.
  void expect_replaced(const std::vector<std::vector<trestleRange_t>>& ranges_of_ranks);

 private:
  void place_buffers(Arenas& arenas);
  Buffer buffer(Arenas& arenas, size_t elements, uint64_t side);
  const std::vector<uint8_t>& values(int source);
  void paint(uint8_t* to, const Piece& piece);
  void paint_expected(std::vector<uint8_t>& image, size_t at, const Piece& piece, const uint8_t* actual);
  std::string compare(const char* which, const Buffer& buffer, std::vector<uint8_t> image) const;

  const Call call_;
  const int rank_;
  const int ranks_;
  const Execution* const first_;
  const bool in_place_;
  bool placed_ = true;
  Shape shape_;
  Buffer send_;  // in place: the buffer of both sides
  Buffer recv_;
  std::map<int, std::vector<uint8_t>> tables_;
  trestleRedOp_t op_ = trestleSum;
  bool own_op_ = false;
  uint64_t scalar_ = 0;
  struct Context {
    uint64_t magic;
    Op op;
    trestleDataType_t type;
  } context_{};
  uint64_t checksum_ = 0;
};

}  // namespace torture
