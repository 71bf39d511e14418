// One collective call of the public API with its buffers and their expected contents.
//
// Each buffer lies between guard bytes and starts at a seeded offset of elements. An image of all its bytes after the
// call is made beforehand. So verify() detects wrong and missing results, writes outside the buffer and changed inputs.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

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

class Buffer {
 public:
  Buffer(size_t bytes, size_t offset, bool shared_memory, uint64_t seed);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() { return all_ + start_; }
  std::byte* picture() { return picture_.data() + start_; }
  // The address that a call is given for the byte at `at` of data(): the same, or its place in memory of a device, if
  // the test runs on one. Then the call sees what is at data() from hand_over() on, and the test what the call wrote
  // from take_back() on.
  std::byte* given(std::byte* at) { return device_ == nullptr ? at : device_ + (at - all_); }
  void hand_over();
  void take_back();
  // Takes the present contents of the buffer as the image, so that any change is an error.
  void expect_unchanged();
  // "", or the place of the first byte that differs from the image.
  std::string difference() const;

 private:
  const size_t start_;
  const size_t bytes_;
  const bool shared_memory_;
  std::byte* all_ = nullptr;
  std::byte* device_ = nullptr;  // the same bytes in memory of a device
  std::vector<std::byte> picture_;
};

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
  size_t sent_elements() const;
  size_t received_elements() const;
  void fill_send(std::byte* to) const;
  void paint_result();

  const Call call_;
  const int rank_;
  const int ranks_;
  std::unique_ptr<Buffer> send_;
  std::unique_ptr<Buffer> recv_;  // nullptr: in place
  void hand_over();

  std::byte* send_at_ = nullptr;
  std::byte* recv_at_ = nullptr;
  std::byte* send_given_ = nullptr;  // to the call
  std::byte* recv_given_ = nullptr;
  std::byte* recv_picture_ = nullptr;
  bool receives_ = true;
};

// Starts a call and waits for it in one of three ways. Any error is a gtest failure.
void run_and_verify(const Call& call, int rank, int ranks, trestleComm_t comm);

}  // namespace api
