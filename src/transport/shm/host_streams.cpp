#include "transport/shm/host_streams.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace trestle {

constexpr size_t kMostUnread = size_t{1} << 30;  // of a stream

Result<std::unique_ptr<HostStreams>> HostStreams::open(const HostKin& kin, const std::string& name, int32_t rank) {
  std::unique_ptr<HostStreams> made(new HostStreams);
  made->channel_ = TRY(HostChannel::open(kin, name, rank, *made));
  TRY(made->channel_->wait_alone());
  return made;
}

Status HostStreams::connect(const std::vector<int32_t>& peers, const std::vector<std::string>& addresses,
                            const std::vector<std::string>& names) {
  channel_->set_peers(addresses, names);
  for (const int32_t peer : peers) TRY(channel_->want(peer));
  return {};
}

Result<size_t> HostStreams::send(int32_t peer, uint64_t stream, std::span<const std::byte> bytes) {
  const auto some = bytes.first(std::min(bytes.size(), kMostFrameBytes));
  const HostFrame frame{.kind = HostFrameKind::kBytes, .id = stream, .bytes = some.size()};
  return TRY(channel_->send(peer, frame, -1, some)) ? some.size() : 0;
}

size_t HostStreams::receive(int32_t peer, uint64_t stream, std::span<std::byte> bytes) {
  const auto found = came_.find({peer, stream});
  if (found == came_.end()) return channel_->left(peer) || lost_.contains(peer) ? kEndOfStream : 0;
  std::string& came = found->second;
  const size_t count = std::min(bytes.size(), came.size());
  std::memcpy(bytes.data(), came.data(), count);
  came.erase(0, count);
  if (came.empty()) came_.erase(found);
  return count;
}

Result<bool> HostStreams::poll() {
  const size_t left = channel_->left_count();
  news_ = false;
  TRY(channel_->poll());
  return news_ || channel_->left_count() != left;
}

Status HostStreams::on_frame(int32_t peer, const HostFrame&, UniqueFd) {
  LOG(kInfo, kShm, "%s sent a frame where bytes were expected", channel_->name(peer).c_str());
  return {};
}

Status HostStreams::on_bytes(int32_t peer, const HostFrame& frame, std::string bytes) {
  news_ = true;
  std::string& came = came_[{peer, frame.id}];
  if (came.size() + bytes.size() > kMostUnread)
    return on_lost(peer, {Code::kRemoteError, "it sends more than is read"});
  came += bytes;
  return {};
}

Status HostStreams::on_lost(int32_t peer, const Error& why) {
  news_ = true;
  if (lost_.insert(peer).second) LOG(kInfo, kShm, "%s", why.message.c_str());
  if (why.code == Code::kSystemError) return why;
  return {};
}

}  // namespace trestle
