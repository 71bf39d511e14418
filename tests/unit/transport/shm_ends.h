// Ends of the shared-memory transport in one thread, and messages between them.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "memory/region.h"
#include "transport/shm/shm.h"

namespace trestle {

inline std::byte pattern(uint64_t seed, size_t i) {
  return static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8));
}

// Ranks of one thread. Every wait drives all of them.
class ShmTransportTest : public testing::Test {
 protected:
  struct Message {
    std::vector<std::byte> data;
    Region region;
    ConstPiece piece;
    Piece target;
    SendRequest send;
    RecvRequest recv;
  };

  void make(int32_t ranks, bool map_memory = true) {
    std::vector<std::string> addresses;
    std::vector<std::string> names;
    for (int32_t r = 0; r < ranks; ++r) {
      EndpointConfig config;
      config.rank = r;
      config.ranks = ranks;
      config.job = "shm transport test";
      config.secret.assign(32, std::byte{3});
      ShmTransportOptions options;
      options.map_memory = map_memory;
      Result<std::unique_ptr<Transport>> made = make_shm_transport(config, options);
      ASSERT_TRUE(made.ok()) << made.error().message;
      ends_.push_back(std::move(made).value());
      addresses.push_back(ends_.back()->address());
      names.push_back("rank " + std::to_string(r));
    }
    for (const auto& end : ends_) ASSERT_TRUE(end->set_peers(addresses, names).ok());
  }

  void drive() {
    for (const auto& end : ends_) {
      const Result<bool> moved = end->progress();
      ASSERT_TRUE(moved.ok()) << moved.error().message;
    }
  }
  // Drives until the condition is true. If it never becomes true, the test's time limit ends the test.
  void until(const std::function<bool()>& condition) {
    while (!condition() && !HasFatalFailure()) drive();
  }

  void address(Message& message, int32_t to, uint64_t number) {
    message.send.peer = to;
    message.send.tag.operation = number;
    message.send.tag.check = check_;
    message.send.bytes = message.piece.bytes;
    message.send.pieces = {&message.piece, 1};
  }
  void send(Message& message, int32_t from, int32_t to, uint64_t number) {
    address(message, to, number);
    until([&] { return ends_[from]->post_send(message.send).value(); });
  }
  // Memory that peers can map.
  static void share(Message& message, std::byte* memory, size_t bytes) {
    message.region = look_at(memory, bytes, nullptr);
    message.piece = {memory, bytes, &message.region};
  }
  Message& unsent(int32_t to, uint64_t number, size_t bytes) {
    Message& message = messages_.emplace_back();
    message.data.resize(bytes);
    for (size_t i = 0; i < bytes; ++i) message.data[i] = pattern(number, i);
    message.piece = {message.data.data(), bytes};
    address(message, to, number);
    return message;
  }
  Message& send_new(int32_t from, int32_t to, uint64_t number, size_t bytes) {
    Message& message = unsent(to, number, bytes);
    until([&] { return ends_[from]->post_send(message.send).value(); });
    return message;
  }
  // target: empty for a view.
  Message& receive(int32_t at, int32_t from, uint64_t number, size_t bytes, bool view) {
    Message& message = messages_.emplace_back();
    message.data.resize(view ? 0 : bytes);
    message.target = {message.data.data(), bytes};
    message.recv.peer = from;
    message.recv.tag.operation = number;
    message.recv.tag.check = check_;
    message.recv.bytes = bytes;
    if (!view) message.recv.pieces = {&message.target, 1};
    until([&] { return ends_[at]->post_recv(message.recv).value(); });
    return message;
  }
  static bool done(const Message& message) { return message.recv.state == RequestState::kDone; }
  static bool sent(const Message& message) { return message.send.state == RequestState::kDone; }

  static void expect_right(const Message& message, uint64_t number) {
    std::vector<std::byte> got = message.data;
    if (message.recv.pieces.empty()) {
      got.clear();
      for (const ConstPiece& piece : message.recv.view) got.insert(got.end(), piece.data, piece.data + piece.bytes);
    }
    ASSERT_EQ(got.size(), message.recv.bytes);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], pattern(number, i)) << "byte " << i << " of " << number;
  }

  std::vector<std::unique_ptr<Transport>> ends_;
  std::deque<Message> messages_;
  uint64_t check_ = 0;  // of messages that are made
};

}  // namespace trestle
