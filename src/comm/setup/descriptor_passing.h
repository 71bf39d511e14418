// DescriptorPassing: which ranks pass descriptors of their devices' memory to each other while a communicator is made,
// and the passing (transport/shm/descriptor_exchange.h). A part of DeviceWiring, with its threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rank_names.h"
#include "comm/device/process_memory.h"
#include "transport/shm/descriptor_exchange.h"

namespace trestle {

// What each rank passes, in this order.
enum class Parcel : uint8_t { kOutbox, kBoard };

class DescriptorPassing {
 public:
  // What a rank says of itself first, if its device maps memory by descriptors: its network namespace and user, which
  // must be those of its peers; else "".
  static std::string network_of(const Device& device);

  // networks: by rank, what network_of() gave. peers: by rank, whether a path between processes may lead there.
  DescriptorPassing(int32_t rank, std::vector<std::string> networks, std::vector<bool> peers)
      : rank_(rank), networks_(std::move(networks)), peers_(std::move(peers)) {}

  // Where the others pass to this rank; "": nowhere. job: the communicator's, in hexadecimal.
  std::string open(const HostKin& kin, const std::string& job);
  // Descriptors, if this rank and all its peers take them.
  SharedBy shared_by() const;
  // Passes with all peers that take descriptors, as DescriptorExchange::run(). posts: by rank, what open() gave. own:
  // of this rank's memory, by Parcel; -1: none. Whoever gets nothing does without the path.
  Status pass(const std::vector<std::string>& posts, std::vector<int> own, const RankNames& names, int64_t deadline_ns,
              const ExchangeWatch& watch);
  // By rank.
  std::vector<UniqueFd> passed(Parcel parcel);

 private:
  bool takes(size_t rank) const { return peers_[rank] && networks_[rank] == networks_[static_cast<size_t>(rank_)]; }

  const int32_t rank_;
  const std::vector<std::string> networks_;
  const std::vector<bool> peers_;
  std::unique_ptr<DescriptorExchange> exchange_;  // nullptr: it takes none
  std::vector<std::vector<UniqueFd>> passed_;     // by rank and Parcel
};

}  // namespace trestle
