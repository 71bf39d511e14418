#include "transport/tcp/attempt.h"

#include <utility>

namespace trestle {

Attempt::Attempt(const AttemptContext& context, UniqueFd fd, int32_t peer)
    : context_(context),
      fd_(std::move(fd)),
      outgoing_(true),
      peer_(peer),
      deadline_ns_(kNever),
      exchange_(Role::kInitiator, Purpose::kTcp, context.credentials, peer),
      stage_(Stage::kConnecting) {}

Attempt::Attempt(const AttemptContext& context, UniqueFd fd, int64_t deadline_ns)
    : context_(context),
      fd_(std::move(fd)),
      outgoing_(false),
      peer_(-1),
      deadline_ns_(deadline_ns),
      exchange_(Role::kAcceptor, Purpose::kTcp, context.credentials),
      stage_(Stage::kHandshake),
      from_(peer_address(fd_.get())) {
  (void)set_tcp_options(fd_.get(), context.options);
}

Error Attempt::lose(std::string sentence) {
  lost_ = true;
  return Error{Code::kRemoteError, std::move(sentence)};
}

Error Attempt::handshake_failed(const Error& error) {
  return exchange_.connection_lost() ? lose(error.message) : error;
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
    case Stage::kVerdict:
      return step_verdict();
    case Stage::kConfirm:
    case Stage::kConfirmation:
      return step_acknowledgement();
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

Result<bool> Attempt::step_handshake() {
  const Result<bool> proved = exchange_.step_to_proof(fd_.get());
  if (!proved.ok()) return handshake_failed(proved.error());
  if (!proved.value()) return false;
  stage_ = outgoing_ ? Stage::kVerdict : Stage::kJudge;
  return outgoing_;
}

Result<bool> Attempt::step_answer() {
  Result<size_t> sent = send_bytes(fd_.get(), std::span(frame_).subspan(frame_bytes_));
  if (!sent.ok()) return lose(sent.error().message);
  frame_bytes_ += sent.value();
  if (frame_bytes_ < kFrameBytes) return sent.value() > 0;
  stage_ = welcome_ ? Stage::kConfirmation : Stage::kYielded;
  return welcome_;
}

// The last part of the handshake: an outgoing attempt sends the acknowledgement, an incoming one awaits it.
Result<bool> Attempt::step_acknowledgement() {
  const Result<bool> done = exchange_.step(fd_.get());
  if (!done.ok()) return handshake_failed(done.error());
  if (done.value()) stage_ = Stage::kWelcomed;
  return false;
}

Result<bool> Attempt::step_verdict() {
  Result<size_t> got = receive_bytes(fd_.get(), std::span(frame_).subspan(frame_bytes_));
  if (!got.ok()) return lose(got.error().message);
  if (got.value() == kEndOfStream) return lose("the peer closed the connection before it had accepted it");
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
