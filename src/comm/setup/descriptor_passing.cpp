#include "comm/setup/descriptor_passing.h"

#include <unistd.h>

#include <algorithm>

#include "base/host.h"
#include "base/log.h"

namespace trestle {

std::string DescriptorPassing::network_of(const Device& device) {
  const uint64_t network = network_namespace();
  if (network == 0 || !device.maps_descriptors()) return {};
  return std::to_string(network) + " of user " + std::to_string(::geteuid());
}

std::string DescriptorPassing::open(const HostKin& kin, const std::string& job) {
  const bool has_peer = std::ranges::find(peers_, true) != peers_.end();
  if (!has_peer || networks_[static_cast<size_t>(rank_)].empty()) return {};
  auto opened = DescriptorExchange::open(kin, job + "/devices", rank_, "memory of its device");
  if (opened.ok()) {
    exchange_ = std::move(opened).value();
    return exchange_->address();
  }
  LOG(kInfo, kInit, "rank %d: no descriptors of devices' memory can be passed to it: %s", rank_,
      opened.error().message.c_str());
  return {};
}

SharedBy DescriptorPassing::shared_by() const {
  if (exchange_ == nullptr) return SharedBy::kTicket;
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r] && !takes(r)) return SharedBy::kTicket;
  }
  return SharedBy::kDescriptor;
}

Status DescriptorPassing::pass(const std::vector<std::string>& posts, std::vector<int> own, const RankNames& names,
                               int64_t deadline_ns, const ExchangeWatch& watch) {
  if (exchange_ == nullptr) return {};
  DescriptorParcels parcels{std::move(own), {}, {}};
  for (size_t r = 0; r < peers_.size(); ++r) parcels.to.push_back(takes(r) && !posts[r].empty());
  parcels.from = parcels.to;
  passed_ = TRY(exchange_->run(parcels, posts, names, deadline_ns, watch));
  exchange_.reset();
  return {};
}

std::vector<UniqueFd> DescriptorPassing::passed(Parcel parcel) {
  std::vector<UniqueFd> descriptors(peers_.size());
  const auto kind = static_cast<size_t>(parcel);
  for (size_t r = 0; r < passed_.size(); ++r) {
    if (kind < passed_[r].size()) descriptors[r] = std::move(passed_[r][kind]);
  }
  return descriptors;
}

}  // namespace trestle
