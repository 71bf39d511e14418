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

std::string DescriptorPassing::open(const std::string& job) {
  const bool has_peer = std::ranges::find(peers_, true) != peers_.end();
  if (!has_peer || networks_[static_cast<size_t>(rank_)].empty()) return {};
  Result<std::unique_ptr<DescriptorPost>> opened = DescriptorPost::open(job, rank_);
  if (opened.ok()) {
    post_ = std::move(opened).value();
    return post_->address();
  }
  LOG(kInfo, kInit, "rank %d: no descriptors of devices' memory can be passed to it: %s", rank_,
      opened.error().message.c_str());
  return {};
}

SharedBy DescriptorPassing::shared_by() const {
  if (post_ == nullptr) return SharedBy::kTicket;
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r] && networks_[r] != networks_[static_cast<size_t>(rank_)]) return SharedBy::kTicket;
  }
  return SharedBy::kDescriptor;
}

void DescriptorPassing::pass(const std::vector<std::string>& posts, Parcel parcel, int descriptor,
                             const RankNames& names) const {
  if (post_ == nullptr || descriptor < 0) return;
  for (size_t r = 0; r < peers_.size(); ++r) {
    if (!peers_[r]) continue;
    const Status sent =
        posts[r].empty() ? Error{Code::kRemoteError, "it does not listen"} : post_->send(posts[r], parcel, descriptor);
    if (!sent.ok())
      LOG(kInfo, kInit, "rank %d: %s gets no descriptor of this device's memory: %s", rank_, names[r].c_str(),
          sent.error().message.c_str());
  }
}

void DescriptorPassing::collect() {
  if (post_ != nullptr) post_->collect();
}

std::vector<UniqueFd> DescriptorPassing::passed(Parcel parcel) {
  std::vector<UniqueFd> descriptors(peers_.size());
  for (size_t r = 0; r < peers_.size() && post_ != nullptr; ++r)
    descriptors[r] = post_->take(static_cast<int32_t>(r), parcel);
  return descriptors;
}

}  // namespace trestle
