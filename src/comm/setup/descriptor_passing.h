// DescriptorPassing: which ranks pass descriptors of their devices' memory to each other while a communicator is made,
// and the passing (comm/setup/descriptor_post.h). A part of DeviceWiring, with its threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_names.h"
#include "comm/device/process_memory.h"
#include "comm/setup/descriptor_post.h"

namespace trestle {

class DescriptorPassing {
 public:
  // What a rank says of itself first, if its device maps memory by descriptors: its network namespace and user, which
  // must be those of its peers; else "".
  static std::string network_of(const Device& device);

  // networks: by rank, what network_of() gave. peers: by rank, whether a path between processes may lead there.
  DescriptorPassing(int32_t rank, std::vector<std::string> networks, std::vector<bool> peers)
      : rank_(rank), networks_(std::move(networks)), peers_(std::move(peers)) {}

  // Begins to listen. Where the others pass to this rank; "": nowhere. job: the communicator's, in hexadecimal.
  std::string open(const std::string& job);
  // Descriptors, if this rank and all its peers take them.
  SharedBy shared_by() const;
  // posts: by rank, what open() gave. descriptor: of this rank's memory; -1: none. Whoever gets nothing does without
  // the path; the log says why.
  void pass(const std::vector<std::string>& posts, Parcel parcel, int descriptor, const RankNames& names) const;
  // All ranks have passed.
  void collect();
  // By rank.
  std::vector<UniqueFd> passed(Parcel parcel);

 private:
  const int32_t rank_;
  const std::vector<std::string> networks_;
  const std::vector<bool> peers_;
  std::unique_ptr<DescriptorPost> post_;  // nullptr: it does not listen
};

}  // namespace trestle
