// DescriptorPost: descriptors that ranks of a host pass to each other while a communicator is made. A rank posts to the
// others, then all ranks meet in an exchange, and from then on each finds what was posted to it: so nobody waits here.
//
// A socket of an abstract name, in the network namespace of the process. Processes of other users are turned away on
// both sides. What a process of the same user posts is believed only once its memory has the words of the job
// (comm/device/peer_probe.h). Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

enum class Parcel : uint8_t { kOutbox, kBoard };

class DescriptorPost {
 public:
  // job: the communicator's, in hexadecimal. Errors: the operating system's.
  static Result<std::unique_ptr<DescriptorPost>> open(const std::string& job, int32_t rank);
  DescriptorPost(const DescriptorPost&) = delete;
  DescriptorPost& operator=(const DescriptorPost&) = delete;

  // Where the others post to this rank.
  const std::string& address() const { return address_; }
  // descriptor: stays the caller's. Errors: kRemoteError: nobody is there, or somebody of another user; the operating
  // system's.
  Status send(const std::string& address, Parcel parcel, int descriptor) const;
  // Takes in what was posted to this rank.
  void collect();
  // What that rank has posted last, once; none: nothing.
  UniqueFd take(int32_t rank, Parcel parcel);

 private:
  DescriptorPost(int32_t rank, std::string address, UniqueFd listener)
      : rank_(rank), address_(std::move(address)), listener_(std::move(listener)) {}
  void receive(const UniqueFd& connection);

  const int32_t rank_;
  const std::string address_;
  const UniqueFd listener_;
  std::map<std::pair<int32_t, Parcel>, UniqueFd> posted_;
};

}  // namespace trestle
