#include "comm/setup/descriptor_post.h"

#include <cstddef>
#include <span>
#include <vector>

#include "base/log.h"
#include "transport/socket/socket.h"

namespace trestle {

namespace {

// As many as may wait at the socket: strangers may stand before ranks.
constexpr size_t kMostConnections = 512;

struct Label {
  int32_t rank = 0;
  Parcel parcel = Parcel::kOutbox;
  uint8_t zero[3] = {};
};

}  // namespace

Result<std::unique_ptr<DescriptorPost>> DescriptorPost::open(const std::string& job, int32_t rank) {
  std::string address = fresh_unix_name("trestle-devices", job, rank);
  UniqueFd listener = TRY(listen_unix(address));
  return std::unique_ptr<DescriptorPost>(new DescriptorPost(rank, std::move(address), std::move(listener)));
}

// What was sent stays for the listener to take after the connection has ended.
Status DescriptorPost::send(const std::string& address, Parcel parcel, int descriptor) const {
  const UniqueFd connection = TRY(connect_unix(address));
  if (!connection) return Error{Code::kRemoteError, "too many connections wait at its socket"};
  if (!peer_has_same_user(connection.get()))
    return Error{Code::kRemoteError, "a process of another user listens at its socket"};
  const Label label{rank_, parcel, {}};
  const size_t sent =
      TRY(send_with_descriptors(connection.get(), std::as_bytes(std::span(&label, 1)), std::span(&descriptor, 1)));
  if (sent == sizeof label) return {};
  return Error{Code::kSystemError, "its socket takes no message"};
}

void DescriptorPost::receive(const UniqueFd& connection) {
  if (!peer_has_same_user(connection.get())) {
    LOG(kWarn, kInit, "rank %d: a process of another user has connected to its socket for descriptors", rank_);
    return;
  }
  Label label;
  std::vector<UniqueFd> descriptors;
  const auto got =
      receive_with_descriptors(connection.get(), std::as_writable_bytes(std::span(&label, 1)), descriptors);
  if (!got.ok()) LOG(kInfo, kInit, "rank %d: a descriptor was not received: %s", rank_, got.error().message.c_str());
  if (!got.ok() || got.value() != sizeof label || descriptors.size() != 1 || label.parcel > Parcel::kBoard) return;
  posted_[{label.rank, label.parcel}] = std::move(descriptors.front());
}

void DescriptorPost::collect() {
  for (size_t i = 0; i < kMostConnections; ++i) {
    const Result<UniqueFd> connection = accept_connection(listener_.get());
    if (!connection.ok())
      LOG(kInfo, kInit, "rank %d: no descriptors were received: %s", rank_, connection.error().message.c_str());
    if (!connection.ok() || !connection.value()) return;
    receive(connection.value());
  }
}

UniqueFd DescriptorPost::take(int32_t rank, Parcel parcel) {
  const auto posted = posted_.find({rank, parcel});
  if (posted == posted_.end()) return {};
  UniqueFd descriptor = std::move(posted->second);
  posted_.erase(posted);
  return descriptor;
}

}  // namespace trestle
