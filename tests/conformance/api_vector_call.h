// One call of a collective with blocks of unequal lengths, with seeded counts and displacements, its buffers and what
// they must hold afterwards: as api_call.h, whose guard bytes and pictures it uses. Gaps between receive blocks are
// part of the picture, so a byte written there is seen.
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
enum class Displacements { kNull, kPacked, kGaps, kPermuted };  // the last one has gaps too
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

// Elements that rank `from` sends to rank `to`; in the all-gather-v and the gather-v to anybody, and so on.
size_t block_count(const VectorCall& call, int from, int to, int ranks);

// Belongs to one rank; made before the call, alive until the stream has passed it.
class VectorExecution {
 public:
  VectorExecution(const VectorCall& call, int rank, int ranks);
  // Immediately, or as a persistent request. The arrays are overwritten before it returns: they were read.
  trestleResult_t start(trestleComm_t comm, trestleStream_t stream) { return issue(comm, stream, nullptr); }
  trestleResult_t init(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request) {
    return issue(comm, stream, request);
  }
  // Spoils the receive blocks, before the call runs again; not in place.
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
  trestleResult_t call_it(const List& sent, const List& received, trestleComm_t comm, trestleStream_t stream) const;
  trestleResult_t init_it(const List& sent, const List& received, trestleComm_t comm, trestleStream_t stream,
                          trestleRequest_t* request) const;
  const size_t* displs_of(const List& list) const {
    return call_.displacements == Displacements::kNull || list.counts.empty() ? nullptr : list.displs.data();
  }
  bool is_root() const { return rank_ == call_.root; }
  bool sends_list() const;
  bool receives_list() const;
  List make_list(bool sending) const;
  size_t own_count() const { return block_count(call_, rank_, rank_, ranks_); }
  void fill_send(std::byte* to) const;
  void paint_result(std::byte* picture) const;

  const VectorCall call_;
  const int rank_;
  const int ranks_;
  List sent_;
  List received_;
  bool in_place_ = false;
  std::unique_ptr<Buffer> send_;
  std::unique_ptr<Buffer> recv_;  // nullptr: in place
  std::byte* send_at_ = nullptr;
  std::byte* recv_at_ = nullptr;
};

// Starts a call and waits for it; a gtest failure if anything is wrong.
void run_and_verify(const VectorCall& call, int rank, int ranks, trestleComm_t comm);

}  // namespace api
