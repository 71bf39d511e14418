#include "control_mesh/control_link.h"

#include <array>
#include <span>

#include "control_mesh/byte_text.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

constexpr size_t kHeaderBytes = 16;

}  // namespace

std::string encode(const FailureReport& failure) {
  return ByteWriter()
      .integer(failure.origin)
      .integer(static_cast<int32_t>(failure.error.code))
      .text(failure.error.message.substr(0, kMaxSentence))
      .take();
}

std::optional<FailureReport> decode_failure_report(const std::string& payload, int32_t ranks) {
  ByteReader in(payload);
  FailureReport failure;
  failure.origin = in.integer<int32_t>();
  const auto code = in.integer<int32_t>();
  failure.error.message = in.text(kMaxSentence);
  if (!in.at_end() || failure.origin < 0 || failure.origin >= ranks) return std::nullopt;
  const bool known = code > static_cast<int>(Code::kSuccess) && code <= static_cast<int>(kLastCode);
  failure.error.code = known ? static_cast<Code>(code) : Code::kRemoteError;
  return failure;
}

void ControlLink::send(const ControlFrame& frame) {
  if (!open() || send_failed_) return;
  ByteWriter bytes;
  bytes.integer(static_cast<uint32_t>(frame.payload.size())).integer(static_cast<uint8_t>(frame.kind));
  bytes.integer(frame.step).integer(uint16_t{0}).integer(frame.seq).raw(frame.payload);
  out_ += bytes.take();
  flush();
}

void ControlLink::flush() {
  while (open() && !send_failed_ && has_output()) {
    const auto rest = std::as_bytes(std::span(out_)).subspan(out_at_);
    const Result<size_t> sent = send_bytes(fd(), rest);
    if (sent.ok() && sent.value() == 0) return;
    if (!sent.ok()) {
      send_failed_ = true;
      break;
    }
    out_at_ += sent.value();
  }
  out_.clear();
  out_at_ = 0;
}

ControlLink::Reading ControlLink::read(std::vector<ControlFrame>& frames, std::string& reason) {
  std::array<std::byte, 4096> buffer;
  while (open()) {
    const Result<size_t> got = receive_bytes(fd(), buffer);
    if (!got.ok()) {
      reason = got.error().message;
      return Reading::kEnded;
    }
    if (got.value() == kEndOfStream) {
      reason = "its connection was closed";
      return Reading::kEnded;
    }
    if (got.value() == 0) break;
    in_.append(reinterpret_cast<const char*>(buffer.data()), got.value());
    if (!take_frames(frames)) return Reading::kMalformed;
    if (got.value() < buffer.size()) break;
  }
  return Reading::kOpen;
}

bool ControlLink::take_frames(std::vector<ControlFrame>& frames) {
  size_t at = 0;
  while (in_.size() - at >= kHeaderBytes) {
    ByteReader header(std::string_view(in_).substr(at, kHeaderBytes));
    const size_t bytes = header.integer<uint32_t>();
    const auto kind = header.integer<uint8_t>();
    ControlFrame frame;
    frame.step = header.integer<uint8_t>();
    header.raw(2);
    frame.seq = header.integer<uint64_t>();
    if (bytes > most_payload_ || kind < static_cast<uint8_t>(ControlKind::kHeartbeat) ||
        kind > static_cast<uint8_t>(ControlKind::kLetter))
      return false;
    if (in_.size() - at - kHeaderBytes < bytes) break;
    frame.kind = static_cast<ControlKind>(kind);
    frame.payload = in_.substr(at + kHeaderBytes, bytes);
    frames.push_back(std::move(frame));
    at += kHeaderBytes + bytes;
  }
  in_.erase(0, at);
  return true;
}

}  // namespace trestle
