// One call of a collective with blocks of unequal lengths, with seeded counts and displacements, its buffers and their
// expected contents. Its buffers are those of api_buffer.h, so a byte written between receive blocks is detected.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "conformance/api_call.h"

namespace api {

inline constexpr trestleCollective_t kUnevenCollectives[] = {
    trestleCollAllGatherV, trestleCollReduceScatterV, trestleCollAllToAllV, trestleCollGatherV, trestleCollScatterV};
enum class Counts { kRandom, kManyZeros, kOneHasAll, kEqual, kNone };
inline constexpr int kCountPatterns = 5;
enum class Displacements { kNull, kPacked, kGaps, kPermuted };  // kPermuted has gaps too
inline constexpr int kDisplacementPatterns = 4;

struct VectorCall {
  trestleCollective_t collective = trestleCollAllGatherV;
  trestleDataType_t type = trestleFloat32;
  trestleRedOp_t op = trestleSum;
  bool in_place = false;
  Counts counts = Counts::kRandom;
  Displacements displacements = Displacements::kNull;
  size_t most = 100;  // elements of the longest block
  int root = 0;
  uint64_t seed = 1;
  bool shared_memory = false;
};
std::ostream& operator<<(std::ostream& out, const VectorCall& call);

// The number of elements that rank `from` sends to rank `to`. In an all-gather-v and a gather-v `to` has no effect, and
// so on.
size_t block_count(const VectorCall& call, int from, int to, int ranks);

// Belongs to one rank. Made before the call; must live until the stream has passed it.
class VectorExecution {
 public:
  VectorExecution(const VectorCall& call, int rank, int ranks);
  // Starts the call immediately or as a persistent request. Overwrites the arrays before it returns, because the
  // library must have read them.
  trestleResult_t start(trestleComm_t comm, trestleStream_t stream) { return issue(comm, stream, nullptr); }
  trestleResult_t init(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
    return issue(comm, stream, request);
  }
  // Overwrites the receive blocks before the call runs again. Not in place.
  void spoil();
  std::string verify() const;

 private:
  struct List {
    std::vector<size_t> counts;
    std::vector<size_t> displs;
    size_t extent = 0;  // elements up to the end of the last block
    const size_t* given() const { return counts.empty() ? nullptr : counts.data(); }
  };
  trestleResult_t issue(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
  const size_t* displs_of(const List& list) const {
    return call_.displacements == Displacements::kNull || list.counts.empty() ? nullptr : list.displs.data();
  }
  bool is_root() const { return rank_ == call_.root; }
  bool sends_list() const;
  bool receives_list() const;
  List make_list(bool sending) const;
  size_t own_count() const { return block_count(call_, rank_, rank_, ranks_); }
  // `at`: of the blocks in the buffer.
  std::vector<Piece> sent_pieces(size_t at) const;
  void expect_result(Buffer& buffer, size_t at) const;

  const VectorCall call_;
  const int rank_;
  const int ranks_;
  List sent_;
  List received_;
  bool in_place_ = false;
  std::unique_ptr<Buffer> send_;
  std::unique_ptr<Buffer> recv_;     // nullptr: in place
  std::byte* send_given_ = nullptr;  // to the call
  std::byte* recv_given_ = nullptr;
};

// Starts a call and waits for it. Any error is a gtest failure.
void run_and_verify(const VectorCall& call, int rank, int ranks, trestleComm_t comm);

}  // namespace api
