// A PeerProtocol whose peer sends anything while its own side posts, reads and writes. It may report an error at any
// time, but it must not touch foreign memory or count wrongly. An input is a list of actions.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/check.h"
#include "support/link_end.h"

namespace trestle {
namespace {

constexpr PeerLimits kLimits{64, 4096};
constexpr uint32_t kIn = 1;
constexpr uint32_t kOut = 2;
constexpr size_t kMostBytes = 160;

class Play {
 public:
  explicit Play(std::span<const uint8_t> input) : input_(input) {}

  void run() {
    while (!input_.empty() && fine_) act(byte() % 8);
    protocol_.close(true);
    // After the end anything may arrive, but no request may be touched.
    requests_.clear();
    (void)protocol_.take(std::as_bytes(input_));
  }

 private:
  struct Request {
    std::array<std::byte, kMostBytes> memory{};
    ConstPiece from;
    Piece to;
    SendRequest send;
    RecvRequest recv;
  };

  uint8_t byte() {
    if (input_.empty()) return 0;
    const uint8_t value = input_[0];
    input_ = input_.subspan(1);
    return value;
  }
  // The tag of a message. Some belong to another operation than the rank's, and some are notices.
  MessageTag tag() {
    const uint8_t value = byte();
    return {value % 16u, value == 0xff ? kNoticePhase : 0, 0, 0, value >= 0xf0 ? uint64_t{1} << 47 : 0};
  }

  void act(int action) {
    switch (action) {
      case 0:
        return raw();
      case 1:
      case 2:
        return frame();
      case 3:
        return post(true);
      case 4:
        return post(false);
      case 5:
        return write();
      case 6:
        return fill();
      case 7:
        return release();
    }
  }

  void raw() {
    const size_t wanted = byte();
    const auto part = input_.first(std::min(wanted, input_.size()));
    input_ = input_.subspan(part.size());
    fine_ = protocol_.take(std::as_bytes(part)).ok();
  }

  // A well-formed header with its whole payload or a part of it.
  void frame() {
    Frame frame;
    frame.type = static_cast<FrameType>(1 + byte() % 13);
    frame.credit = byte() % 8 == 0 ? byte() * 8u : 0;
    frame.tag = tag();
    frame.bytes = byte() % (kMostBytes + 1);
    // Most frames carry the whole message; some a part of it, or lie.
    const bool part = byte() % 3 == 0;
    frame.at = part ? byte() : 0;
    frame.length = part ? byte() % (kMostBytes + 1) : frame.bytes;
    std::array<std::byte, kFrameBytes + kMostBytes> wire{};
    encode_frame(frame, kIn, wire.data());
    const size_t bytes = has_payload(frame.type) && byte() % 4 != 0 ? frame.length : 0;
    fine_ = protocol_.take(std::span(wire).first(kFrameBytes + bytes)).ok();
  }

  void post(bool send) {
    if (requests_.size() >= 64) return;
    if (byte() % 4 == 0) fine_ = agreement_.announce(byte() % 16u, 0);
    if (!fine_) return;
    Request& request = requests_.emplace_back();
    const size_t bytes = byte() % (kMostBytes + 1);
    request.from = {request.memory.data(), bytes};
    request.to = {request.memory.data(), bytes};
    if (send) {
      request.send.tag = tag();
      request.send.pieces = {&request.from, 1};
      request.send.bytes = bytes;
      fine_ = protocol_->post_send(request.send).ok();
    } else {
      request.recv.tag = tag();
      request.recv.bytes = bytes;
      if (byte() % 2 == 0) request.recv.pieces = {&request.to, 1};
      fine_ = protocol_->post_recv(request.recv).ok();
    }
  }

  void write() {
    std::array<iovec, 16> vectors;
    const size_t used = protocol_.fill_output(vectors);
    size_t bytes = 0;
    for (size_t i = 0; i < used; ++i) bytes += vectors[i].iov_len;
    protocol_.wrote(std::min<size_t>(bytes, byte() * 4u));
  }

  void fill() {
    std::array<iovec, 16> vectors;
    const size_t used = protocol_.target(vectors);
    size_t room = 0;
    for (size_t i = 0; i < used; ++i) room += vectors[i].iov_len;
    CHECK(room <= kMostBytes, "more is to be read than any message has");
    size_t left = std::min<size_t>(room, byte());
    const size_t filled = left;
    for (size_t i = 0; left > 0; ++i) {
      const size_t step = std::min(left, vectors[i].iov_len);
      std::fill_n(static_cast<std::byte*>(vectors[i].iov_base), step, std::byte{5});
      left -= step;
    }
    fine_ = protocol_.filled(filled).ok();
  }

  void release() {
    for (Request& request : requests_) {
      if (request.recv.state != RequestState::kDone || request.recv.view.empty()) continue;
      size_t bytes = 0;
      for (const ConstPiece& piece : request.recv.view) bytes += piece.bytes;
      CHECK(bytes == request.recv.bytes, "a view has other bytes than its request");
      protocol_->release(request.recv);
      request.recv.view.clear();
    }
  }

  std::span<const uint8_t> input_;
  BufferPool pool_{4096};
  Agreement agreement_{0, {}};
  std::deque<Request> requests_;
  LinkEnd protocol_{kLimits, kIn, kOut, pool_, &agreement_, 1};
  bool fine_ = true;
};

}  // namespace
}  // namespace trestle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  trestle::Play({data, size}).run();
  return 0;
}
