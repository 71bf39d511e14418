#include "rendezvous/line.h"

#include <array>
#include <span>

#include "base/text/byte_text.h"
#include "transport/socket/socket.h"

namespace trestle {

Status RendezvousLine::look() {
  std::array<std::byte, 1024> buffer;
  while (socket_) {
    const Result<size_t> got = receive_bytes(socket_.get(), buffer);
    if (!got.ok() || got.value() == kEndOfStream) return fail(lost_);
    if (got.value() == 0) break;
    in_.append(reinterpret_cast<const char*>(buffer.data()), got.value());
    if (in_.size() < 4) continue;
    const auto bytes = ByteReader(in_).integer<uint32_t>();
    if (bytes > kMaxJoinBytes) return fail({Code::kRemoteError, "the rendezvous sent a message that is too long"});
    if (in_.size() - 4 < bytes) continue;
    const Result<JoinAnswer> answer = decode_join_answer(std::string_view(in_).substr(4, bytes));
    if (!answer.ok()) return fail(answer.error());
    if (answer.value().error.code != Code::kSuccess) return fail(answer.value().error);
    socket_.reset();  // the rendezvous ends in order
  }
  if (failure_.code != Code::kSuccess) return failure_;
  return {};
}

Status RendezvousLine::fail(Error error) {
  socket_.reset();
  failure_ = std::move(error);
  return failure_;
}

void RendezvousLine::report(const JoinReport& report) {
  if (!socket_) return;
  const std::string message = framed(encode(report));
  // A short message on a connection that has hardly been used: if it is not taken completely, the connection has ended.
  (void)send_bytes(socket_.get(), std::as_bytes(std::span(message)));
  end_sending(socket_.get());
  socket_.reset();
}

}  // namespace trestle
