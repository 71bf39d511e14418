#include "control_mesh/control_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/text/byte_text.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

constexpr size_t kHeaderBytes = 24;
constexpr size_t kCameAt = 16;  // in the header
// An acknowledgement is due when this much has come. So a peer keeps little more than this.
constexpr uint64_t kMostUntold = 64;
constexpr size_t kMostUntoldBytes = size_t{256} << 10;

// Heartbeats and acknowledgements say how things are now, so they are never sent again.
bool counts(ControlKind kind) {
  return kind != ControlKind::kHeartbeat && kind != ControlKind::kAck;
}

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

std::string encode(const ControlFrame& frame, uint64_t came) {
  ByteWriter writer;
  writer.integer(static_cast<uint32_t>(frame.payload.size())).integer(static_cast<uint8_t>(frame.kind));
  return writer.integer(frame.step).integer(uint16_t{0}).integer(frame.seq).integer(came).raw(frame.payload).take();
}

ControlLink::ControlLink(int32_t peer, UniqueFd socket, size_t most_payload)
    : made(static_cast<bool>(socket)),
      peer_(peer),
      socket_(std::move(socket)),
      most_payload_(most_payload),
      away_(!made),
      host_(HostAddress(peer_address(socket_.get())).text()) {}

ControlLink::ControlLink(int32_t peer, HostStreams& streams, uint64_t sends, uint64_t receives, size_t most_payload)
    : peer_(peer), streams_(&streams), sends_(sends), receives_(receives), most_payload_(most_payload) {}

void ControlLink::end() {
  socket_.reset();
  streams_ = nullptr;
  away_ = false;
  keep_no_frames();
  drop_output();
}

void ControlLink::hand_over_output() {
  if (streams_ != nullptr && has_output())
    streams_->send_last(peer_, sends_, std::as_bytes(std::span(out_)).subspan(out_at_));
  drop_output();
}

void ControlLink::drop_output() {
  out_.clear();
  out_at_ = 0;
}

void ControlLink::send(const ControlFrame& frame) {
  if (ended()) return;
  const std::string bytes = encode(frame, came_);
  if (counts(frame.kind)) keep(bytes);
  if (!open() || send_failed_) return;
  told_ = came_;
  untold_bytes_ = 0;
  owes_bye_ = false;
  out_ += bytes;
  flush();
}

Result<size_t> ControlLink::write(std::span<const std::byte> bytes) {
  return streams_ != nullptr ? streams_->send(peer_, sends_, bytes) : send_bytes(fd(), bytes);
}

Result<size_t> ControlLink::read_some(std::span<std::byte> bytes) {
  if (streams_ != nullptr) return streams_->receive(peer_, receives_, bytes);
  return receive_bytes(fd(), bytes);
}

void ControlLink::flush() {
  while (open() && !send_failed_ && has_output()) {
    const auto rest = std::as_bytes(std::span(out_)).subspan(out_at_);
    const Result<size_t> sent = write(rest);
    if (sent.ok() && sent.value() == 0) return;
    if (!sent.ok()) {
      send_failed_ = true;
      if (is_unreachable(sent.error())) lost_by_ = sent.error().message;
      break;
    }
    out_at_ += sent.value();
  }
  drop_output();
}

void ControlLink::keep(const std::string& bytes) {
  ++sent_;
  if (!keeps_ || too_much_) return;
  kept_bytes_ += bytes.size();
  kept_.push_back(bytes);
  too_much_ = kept_bytes_ > kMostKeptBytes;
  if (too_much_) drop_kept();
}

void ControlLink::keep_no_frames() {
  keeps_ = false;
  drop_kept();
}

void ControlLink::drop_kept() {
  kept_.clear();
  kept_bytes_ = 0;
}

// The peer has `came` frames, so these are not kept any more. An older number says nothing new. False: this side has
// not sent so many.
bool ControlLink::confirm(uint64_t came) {
  if (came > sent_) return false;
  if (came == sent_) too_much_ = false;
  while (sent_ - kept_.size() < came && !kept_.empty()) {
    kept_bytes_ -= kept_.front().size();
    kept_.pop_front();
  }
  return true;
}

void ControlLink::part() {
  socket_.reset();
  away_ = true;
  wants_writable = false;
  send_failed_ = false;
  lost_by_.clear();
  in_.clear();  // a frame that has come in part comes again as a whole
  drop_output();
}

bool ControlLink::resume(UniqueFd socket, uint64_t came) {
  CHECK(away_, "a new connection for a link that is not away");
  if (came > sent_ || came < sent_ - kept_.size()) return false;
  if (!confirm(came)) return false;
  socket_ = std::move(socket);
  host_ = HostAddress(peer_address(fd())).text();
  away_ = false;
  made = true;
  told_ = came_;
  untold_bytes_ = 0;
  owes_bye_ = false;
  for (std::string& frame : kept_) {
    frame.replace(kCameAt, sizeof came_, ByteWriter().integer(came_).take());
    out_ += frame;
  }
  flush();
  return true;
}

bool ControlLink::owes_ack() const {
  return open() && keeps_ && (came_ - told_ >= kMostUntold || untold_bytes_ >= kMostUntoldBytes || owes_bye_);
}

ControlLink::Reading ControlLink::read(std::vector<ControlFrame>& frames, std::string& reason) {
  std::array<std::byte, 4096> buffer;
  while (open()) {
    const Result<size_t> got = read_some(buffer);
    if (!got.ok()) {
      reason = got.error().message;
      return is_unreachable(got.error()) ? Reading::kLost : Reading::kEnded;
    }
    if (got.value() == kEndOfStream) {
      reason = lost_by_.empty() ? "its connection was closed" : lost_by_;
      return lost_by_.empty() ? Reading::kEnded : Reading::kLost;
    }
    if (got.value() == 0) break;
    in_.append(reinterpret_cast<const char*>(buffer.data()), got.value());
    const size_t known = frames.size();
    if (!take_frames(frames)) return Reading::kMalformed;
    const auto is_bye = [](const ControlFrame& frame) { return frame.kind == ControlKind::kBye; };
    // Its sender waits until this kernel has acknowledged it.
    if (socket_ && std::any_of(frames.begin() + static_cast<ptrdiff_t>(known), frames.end(), is_bye))
      acknowledge_now(fd());
    // Of a stream the end is news only once.
    if (socket_ && got.value() < buffer.size()) break;
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
    const auto came = header.integer<uint64_t>();
    if (bytes > most_payload_ || kind < static_cast<uint8_t>(ControlKind::kHeartbeat) ||
        kind > static_cast<uint8_t>(ControlKind::kAck) || !confirm(came))
      return false;
    if (in_.size() - at - kHeaderBytes < bytes) break;
    frame.kind = static_cast<ControlKind>(kind);
    frame.payload = in_.substr(at + kHeaderBytes, bytes);
    if (counts(frame.kind)) {
      ++came_;
      untold_bytes_ += kHeaderBytes + bytes;
      owes_bye_ = owes_bye_ || frame.kind == ControlKind::kBye;
    }
    frames.push_back(std::move(frame));
    at += kHeaderBytes + bytes;
  }
  in_.erase(0, at);
  return true;
}

}  // namespace trestle
