#include "transport/tcp/attempt.h"

namespace trestle {

Attempt::Attempt(const AttemptContext& context, UniqueFd fd, int32_t peer)
    : context_(context),
      fd_(std::move(fd)),
      outgoing_(true),
      peer_(peer),
      deadline_ns_(kNever),
      handshake_(Role::kInitiator, Purpose::kTcp, context.credentials, peer),
      stage_(Stage::kConnecting) {}

Attempt::Attempt(const AttemptContext& context, UniqueFd fd, int64_t deadline_ns)
    : context_(context),
      fd_(std::move(fd)),
      outgoing_(false),
      peer_(-1),
      deadline_ns_(deadline_ns),
      handshake_(Role::kAcceptor, Purpose::kTcp, context.credentials),
      stage_(Stage::kHandshake),
      from_(peer_address(fd_.get())) {
  (void)set_tcp_options(fd_.get(), context.options);
}

Error Attempt::lose(const char* sentence) {
  lost_ = true;
  return Error{Code::kRemoteError, sentence};
}

Status Attempt::drive() {
  while (TRY(step())) {
  }
  return {};
}

void Attempt::judge(bool welcome) {
  welcome_ = welcome;
  Frame frame;
  frame.type = welcome ? FrameType::kWelcome : FrameType::kYield;
  encode_frame(frame, frame_check(context_.job, context_.rank, peer()), frame_.data());
  stage_ = Stage::kAnswer;
}

Result<bool> Attempt::step() {
  switch (stage_) {
    case Stage::kConnecting:
      return step_connecting();
    case Stage::kHandshake:
      return step_handshake();
    case Stage::kAnswer:
      return step_answer();
    case Stage::kConfirmation:
      return step_confirmation();
    case Stage::kVerdict:
      return step_verdict();
    case Stage::kConfirm:
      return step_confirm();
    case Stage::kJudge:
    case Stage::kWelcomed:
    case Stage::kYielded:
      break;
  }
  return false;
}

Result<bool> Attempt::step_connecting() {
  if (!TRY(finish_connect(fd_.get()))) return false;
  (void)set_tcp_options(fd_.get(), context_.options);
  stage_ = Stage::kHandshake;
  return true;
}

Result<bool> Attempt::send_handshake() {
  Result<size_t> sent = send_bytes(fd_.get(), handshake_.outgoing());
  if (!sent.ok()) return lose(sent.error().message.c_str());
  handshake_.sent(sent.value());
  return sent.value() > 0;
}

Result<bool> Attempt::step_handshake() {
  if (outgoing_ && handshake_.peer_proved()) {  // the acknowledgement waits for the verdict
    stage_ = Stage::kVerdict;
    return true;
  }
  if (!handshake_.outgoing().empty()) return send_handshake();
  if (handshake_.peer_proved()) {
    stage_ = Stage::kJudge;
    return false;
  }
  return receive_handshake();
}

Result<bool> Attempt::receive_handshake() {
  std::array<std::byte, kHelloBytes> buffer;
  Result<size_t> got = receive_bytes(fd_.get(), std::span(buffer).first(handshake_.wanted()));
  if (!got.ok()) return lose(got.error().message.c_str());
  if (got.value() == kEndOfStream) return lose("closed the connection during the handshake");
  if (got.value() == 0) return false;
  said_ = true;
  Status status = handshake_.received(std::span(buffer).first(got.value()));
  if (status.ok()) return true;
  if (!handshake_.outgoing().empty()) (void)send_bytes(fd_.get(), handshake_.outgoing());
  return status.error();
}

Result<bool> Attempt::step_answer() {
  Result<size_t> sent = send_bytes(fd_.get(), std::span(frame_).subspan(frame_bytes_));
  if (!sent.ok()) return lose(sent.error().message.c_str());
  frame_bytes_ += sent.value();
  if (frame_bytes_ < kFrameBytes) return sent.value() > 0;
  stage_ = welcome_ ? Stage::kConfirmation : Stage::kYielded;
  return welcome_;
}

Result<bool> Attempt::step_confirmation() {
  if (!handshake_.done()) return receive_handshake();
  stage_ = Stage::kWelcomed;
  return false;
}

Result<bool> Attempt::step_confirm() {
  if (!handshake_.done()) return send_handshake();
  stage_ = Stage::kWelcomed;
  return false;
}

Result<bool> Attempt::step_verdict() {
  Result<size_t> got = receive_bytes(fd_.get(), std::span(frame_).subspan(frame_bytes_));
  if (!got.ok()) return lose(got.error().message.c_str());
  if (got.value() == kEndOfStream) return lose("closed the connection before it had accepted it");
  if (got.value() == 0) return false;
  frame_bytes_ += got.value();
  if (frame_bytes_ < kFrameBytes) return true;
  const Frame frame = TRY(decode_frame(frame_.data(), frame_check(context_.job, peer_, context_.rank)));
  if (frame.type != FrameType::kWelcome && frame.type != FrameType::kYield)
    return Error{Code::kRemoteError,
                 "answered the handshake with a frame of type " + std::to_string(static_cast<int>(frame.type))};
  stage_ = frame.type == FrameType::kWelcome ? Stage::kConfirm : Stage::kYielded;
  return stage_ == Stage::kConfirm;
}

}  // namespace trestle
