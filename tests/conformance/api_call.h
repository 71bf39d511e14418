// One collective call of the public API with its buffers and their expected contents.
//
// Each buffer lies between guard bytes and starts at a seeded offset of elements. What all its bytes are after the call
// is known beforehand. So verify() detects wrong and missing results, writes outside the buffer and changed inputs.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "conformance/buffers/api_buffer.h"
#include "support/any_call.h"

namespace api {

struct Call {
  trestleCollective_t collective = trestleCollAllReduce;
  trestleDataType_t type = trestleFloat32;
  trestleRedOp_t op = trestleSum;
  bool in_place = false;
  size_t count = 0;
  int root = 0;
  uint64_t seed = 1;
  bool shared_memory = false;  // buffers come from trestleMemAlloc
};
std::string to_string(const Call& call);
std::ostream& operator<<(std::ostream& out, const Call& call);
bool reduces(trestleCollective_t collective);
// The collectives that a Call may have.
inline constexpr trestleCollective_t kEvenCollectives[] = {
    trestleCollAllReduce, trestleCollReduceScatter, trestleCollAllGather, trestleCollBroadcast,
    trestleCollReduce,    trestleCollAllToAll,      trestleCollGather,    trestleCollScatter};

// Belongs to one rank. Made before the call; must live until the stream has passed it.
class Execution {
 public:
  Execution(const Call& call, int rank, int ranks);
  trestleResult_t start(trestleComm_t comm, trestleStream_t stream);
  // Makes a persistent request for the same call.
  trestleResult_t init(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
  // Overwrites the memory that the call writes, before it runs again. Not in place.
  void spoil();
  // "" or the error. To be called after the stream has passed the call.
  std::string verify();

 private:
  AnyCall made() const;
  size_t sent_elements(int rank) const;
  size_t received_elements() const;
  Image sent_by(int rank) const;
  void expect_result(Buffer& buffer, size_t at) const;
  void hand_over();

  const Call call_;
  const int rank_;
  const int ranks_;
  std::unique_ptr<Buffer> send_;
  std::unique_ptr<Buffer> recv_;     // nullptr: in place
  std::byte* send_given_ = nullptr;  // to the call
  std::byte* recv_given_ = nullptr;
  bool receives_ = true;
};

// Starts a call and waits for it in one of three ways. Any error is a gtest failure.
void run_and_verify(const Call& call, int rank, int ranks, trestleComm_t comm);

}  // namespace api
