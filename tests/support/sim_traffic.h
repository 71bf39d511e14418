// Messages between the ranks of a SimRails, whose content tells which byte it is. Single-threaded.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "support/sim_rails.h"

namespace trestle {

inline std::byte content(uint64_t number, size_t at) {
  return static_cast<std::byte>((number * 131 + at * 7 + (at >> 8) * 13) & 0xff);
}

// A message in pieces with guard bytes around them, both ends.
struct Message {
  Message(int32_t from, int32_t to, uint64_t number, size_t bytes, bool view) : from(from), to(to), number(number) {
    sent.resize(bytes);
    for (size_t i = 0; i < bytes; ++i) sent[i] = content(number, i);
    received.assign(bytes + 2, std::byte{0xee});
    cut(bytes);
    send.peer = to;
    recv.peer = from;
    send.tag.operation = recv.tag.operation = number;
    send.bytes = recv.bytes = bytes;
    send.pieces = out;
    if (!view) recv.pieces = in;
    is_view = view;
  }
  void cut(size_t bytes) {
    const size_t third = bytes / 3;
    out = {{sent.data(), third, nullptr}, {sent.data() + third, bytes - third, nullptr}};
    in = {{received.data() + 1, bytes - third, nullptr}, {received.data() + 1 + bytes - third, third, nullptr}};
  }
  bool done() const { return send.state == RequestState::kDone && recv.state == RequestState::kDone; }
  bool right() const {
    std::vector<std::byte> data;
    if (is_view) {
      for (const ConstPiece& piece : recv.view) data.insert(data.end(), piece.data, piece.data + piece.bytes);
    } else {
      if (received.front() != std::byte{0xee} || received.back() != std::byte{0xee}) return false;
      data.assign(received.begin() + 1, received.end() - 1);
    }
    if (data.size() != sent.size()) return false;
    for (size_t i = 0; i < data.size(); ++i) {
      if (data[i] != content(number, i)) return false;
    }
    return true;
  }

  int32_t from, to;
  uint64_t number;
  std::vector<std::byte> sent, received;
  std::vector<ConstPiece> out;
  std::vector<Piece> in;
  SendRequest send;
  RecvRequest recv;
  bool is_view = false, send_posted = false, recv_posted = false;
};

inline size_t random_size(Rng& rng) {
  switch (rng.below(5)) {
    case 0:
      return rng.below(3);
    case 1:
      return rng.below(32 * 1024 + 1);
    case 2:
      return 32 * 1024 + rng.below(64 * 1024);
    default:
      return rng.below(1 << 20);
  }
}

// Random messages between all pairs of ranks, posted in random order; at most `open` at a time.
class Traffic {
 public:
  Traffic(SimRails& net, int32_t ranks, uint64_t seed, size_t messages) : net_(net), rng_(seed) {
    for (uint64_t number = 0; number < messages; ++number) {
      const auto from = static_cast<int32_t>(rng_.below(static_cast<uint64_t>(ranks)));
      const auto to = static_cast<int32_t>((from + 1 + rng_.below(static_cast<uint64_t>(ranks - 1))) % ranks);
      all_.emplace_back(from, to, number, random_size(rng_), rng_.below(4) == 0);
    }
  }
  // `event` runs now and then.
  Status run(const std::function<void(Rng&)>& event) {
    for (size_t steps = 0; done_ < all_.size(); ++steps) {
      if (steps > 3'000'000) return Error{Code::kInternalError, "the messages do not arrive: " + std::to_string(done_)};
      TRY(post());
      TRY(net_.step());
      TRY(finish());
      if (rng_.below(40) == 0) event(rng_);
    }
    return {};
  }

 private:
  Status post() {
    const size_t end = std::min(all_.size(), done_ + 12);
    for (size_t i = done_; i < end; ++i) {
      Message& message = all_[i];
      if (!message.send_posted && rng_.below(3) == 0)
        message.send_posted = TRY(net_[message.from].post_send(message.send));
      if (!message.recv_posted && rng_.below(3) == 0)
        message.recv_posted = TRY(net_[message.to].post_recv(message.recv));
    }
    return {};
  }
  Status finish() {
    for (; done_ < all_.size() && all_[done_].done(); ++done_) {
      Message& message = all_[done_];
      if (!message.right()) return Error{Code::kInternalError, "message " + std::to_string(done_) + " is wrong"};
      net_[message.to].release(message.recv);
    }
    return {};
  }

  SimRails& net_;
  Rng rng_;
  std::deque<Message> all_;
  size_t done_ = 0;
};

}  // namespace trestle
