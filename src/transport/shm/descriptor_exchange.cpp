#include "transport/shm/descriptor_exchange.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace trestle {

Result<std::unique_ptr<DescriptorExchange>> DescriptorExchange::open(const HostKin& kin, const std::string& name,
                                                                     int32_t rank, std::string what) {
  std::unique_ptr<DescriptorExchange> made(new DescriptorExchange(std::move(what)));
  made->channel_ = TRY(HostChannel::open(kin, name, rank, *made));
  made->given_.resize(kin.ranks.size());
  made->got_.resize(kin.ranks.size());
  return made;
}

// id: which parcel. message: whether it has a descriptor.
Status DescriptorExchange::on_frame(int32_t peer, const HostFrame& frame, UniqueFd fd) {
  std::vector<UniqueFd>& got = got_[static_cast<size_t>(peer)];
  if (frame.kind == HostFrameKind::kParcel && frame.message != 0 && !fd)
    return Error{Code::kSystemError, "no open file is left for " + what_ + " (limit of open files: ulimit -n)"};
  if (frame.kind != HostFrameKind::kParcel || frame.id != got.size() || (frame.message == 0) != !fd)
    return Error{Code::kRemoteError, channel_->name(peer) + " sent something else than " + what_};
  got.push_back(std::move(fd));
  return {};
}

// Only givers connect. Else a rank would have two connections with each of many that get its board.
Status DescriptorExchange::begin(const DescriptorParcels& parcels) {
  TRY(channel_->wait_alone());
  for (size_t r = 0; r < parcels.to.size(); ++r) {
    if (parcels.to[r]) TRY(channel_->want(static_cast<int32_t>(r)));
    if (parcels.from[r]) channel_->use(static_cast<int32_t>(r));
  }
  return {};
}

bool DescriptorExchange::has_more_to_give(const DescriptorParcels& parcels) const {
  for (size_t r = 0; r < parcels.to.size(); ++r) {
    if (parcels.to[r] && channel_->ready(static_cast<int32_t>(r)) && given_[r] < parcels.own.size()) return true;
  }
  return false;
}

Status DescriptorExchange::give(const DescriptorParcels& parcels) {
  for (size_t r = 0; r < parcels.to.size(); ++r) {
    size_t& given = given_[r];
    while (parcels.to[r] && given < parcels.own.size()) {
      const int fd = parcels.own[given];
      const HostFrame frame{.kind = HostFrameKind::kParcel, .id = given, .message = fd >= 0};
      if (!TRY(channel_->send(static_cast<int32_t>(r), frame, fd))) break;
      ++given;
    }
  }
  return {};
}

int32_t DescriptorExchange::first_missing(const DescriptorParcels& parcels) const {
  for (size_t r = 0; r < parcels.to.size(); ++r) {
    const bool lacks = parcels.to[r] && given_[r] < parcels.own.size();
    if (lacks || (parcels.from[r] && got_[r].size() < parcels.own.size())) return static_cast<int32_t>(r);
  }
  return -1;
}

Status DescriptorExchange::wait_for(int32_t rank, bool soon, int64_t deadline_ns, const ExchangeWatch& watch) const {
  constexpr int64_t kMostMs = 1000;
  if (channel_->left(rank)) return Error{Code::kRemoteError, channel_->name(rank) + " has left without " + what_};
  if (watch.awaits) watch.awaits(rank);
  if (watch.look) TRY(watch.look());
  const int64_t left_ns = deadline_ns - monotonic_clock().now_ns();
  if (left_ns <= 0) return Error{Code::kTimeout, channel_->name(rank) + " did not come for " + what_ + " in time"};
  pollfd watched[2] = {{channel_->event_fd(), POLLIN, 0}, {watch.fd, POLLIN, 0}};
  // A socket that is full, or a queue, tells of no event.
  const int64_t most_ms = soon || channel_->wants_poll() ? 1 : kMostMs;
  (void)::poll(watched, 2, static_cast<int>(std::min(left_ns / 1'000'000 + 1, most_ms)));
  return {};
}

Result<std::vector<std::vector<UniqueFd>>> DescriptorExchange::run(const DescriptorParcels& parcels,
                                                                   const std::vector<std::string>& addresses,
                                                                   const std::vector<std::string>& names,
                                                                   int64_t deadline_ns, const ExchangeWatch& watch) {
  channel_->set_peers(addresses, names);
  TRY(begin(parcels));
  for (;;) {
    TRY(channel_->poll());
    TRY(give(parcels));
    const int32_t missing = first_missing(parcels);
    if (missing < 0) break;
    TRY(wait_for(missing, has_more_to_give(parcels), deadline_ns, watch));
  }
  channel_->close(0);
  return std::move(got_);
}

}  // namespace trestle
