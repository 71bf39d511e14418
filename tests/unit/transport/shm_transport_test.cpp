// Promises of the shared-memory transport beyond the common contract (tests/conformance): nothing waits behind
// unreleased views, mapped memory is read in place, and a rank that is driven rarely needs few rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "memory/mem_alloc.h"
#include "memory/region.h"
#include "unit/transport/shm_ends.h"

namespace trestle {
namespace {

// A thread waits for only one of several communicators of a process at a time.
TEST_F(ShmTransportTest, ARankThatIsDrivenRarelyConnectsInFewRounds) {
  constexpr int kMostRounds = 32;
  make(2);
  Message& in = receive(1, 0, 1, 24, false);
  Message& out = unsent(1, 1, 24);
  bool posted = false;
  for (int round = 0; round < kMostRounds && !done(in); ++round) {
    for (int i = 0; i < 300; ++i) {
      posted = posted || ends_[0]->post_send(out.send).value();
      ASSERT_TRUE(ends_[0]->progress().ok());
    }
    ends_[1]->look_everywhere();
    ASSERT_TRUE(ends_[1]->progress().ok());
  }
  ASSERT_TRUE(done(in));
  expect_right(in, 1);
}

// Small segments and views that wait for each other: a rank that is driven once a millisecond took minutes for an
// operation, because every message beyond the slots waited for hundreds of rounds.
TEST_F(ShmTransportTest, ARankThatIsDrivenRarelyGetsMessagesBehindUnreleasedViewsInFewRounds) {
  make(2);
  for (const size_t bytes : {size_t{4000}, size_t{262'144}}) {
    constexpr int kMessages = 50;
    std::vector<Message*> held;
    for (uint64_t n = bytes; n < bytes + kMessages; ++n) held.push_back(&receive(1, 0, n, bytes, true));
    std::vector<Message*> out;
    for (uint64_t n = bytes; n < bytes + kMessages; ++n) out.push_back(&unsent(1, n, bytes));
    size_t posted = 0;
    int rounds = 0;
    for (; !done(*held.back()); ++rounds) {
      ASSERT_LT(rounds, 20 * kMessages) << bytes;
      for (int i = 0; i < 100; ++i) {
        if (posted < out.size() && ends_[0]->post_send(out[posted]->send).value()) ++posted;
        ASSERT_TRUE(ends_[0]->progress().ok());
      }
      ends_[1]->look_everywhere();
      ASSERT_TRUE(ends_[1]->progress().ok());
    }
    for (uint64_t i = 0; i < held.size(); ++i) {
      until([&] { return done(*held[i]); });
      expect_right(*held[i], bytes + i);
    }
    for (Message* in : held) ends_[1]->release(in->recv);
  }
}

TEST_F(ShmTransportTest, ReadsMappedMemoryInPlace) {
  make(2);
  const size_t bytes = 300'000;
  auto* const memory = static_cast<std::byte*>(mem_alloc(bytes).value());
  for (size_t i = 0; i < bytes; ++i) memory[i] = pattern(1, i);
  Message& out = messages_.emplace_back();
  share(out, memory, bytes);
  send(out, 0, 1, 1);
  Message& in = receive(1, 0, 1, bytes, true);
  until([&] { return done(in); });
  expect_right(in, 1);
  // The receiver reads the sender's memory, so the send is complete only after the release.
  memory[0] = std::byte{99};
  EXPECT_EQ(in.recv.view[0].data[0], std::byte{99});
  for (int i = 0; i < 100; ++i) drive();
  EXPECT_FALSE(sent(out));
  ends_[1]->release(in.recv);
  until([&] { return sent(out); });

  // Several pieces into a destination.
  memory[0] = pattern(1, 0);
  std::vector<ConstPiece> pieces;
  for (size_t at = 0; at < bytes; at += 30'000) pieces.push_back({memory + at, 30'000, &out.region});
  Message& many = messages_.emplace_back();
  many.send.peer = 1;
  many.send.tag.operation = 2;
  many.send.bytes = bytes;
  many.send.pieces = pieces;
  Message& whole = receive(1, 0, 2, bytes, false);
  until([&] { return ends_[0]->post_send(many.send).value(); });
  until([&] { return sent(many) && done(whole); });
  expect_right(whole, 1);

  // Freed memory is forgotten, and new memory at the same address is recognized as new.
  ASSERT_TRUE(mem_free(memory).ok());
  auto* const again = static_cast<std::byte*>(mem_alloc(bytes).value());
  for (size_t i = 0; i < bytes; ++i) again[i] = pattern(3, i);
  Message& third = messages_.emplace_back();
  share(third, again, bytes);
  send(third, 0, 1, 3);
  Message& third_in = receive(1, 0, 3, bytes, true);
  until([&] { return done(third_in); });
  expect_right(third_in, 3);
  ends_[1]->release(third_in.recv);
  until([&] { return sent(third); });
  EXPECT_TRUE(mem_free(again).ok());
}

TEST_F(ShmTransportTest, CopiesMappedMemoryWhenToldTo) {
  make(2, false);
  const size_t bytes = 100'000;
  auto* const memory = static_cast<std::byte*>(mem_alloc(bytes).value());
  for (size_t i = 0; i < bytes; ++i) memory[i] = pattern(1, i);
  Message& out = messages_.emplace_back();
  share(out, memory, bytes);
  send(out, 0, 1, 1);
  Message& in = receive(1, 0, 1, bytes, true);
  until([&] { return done(in) && sent(out); });
  memory[0] = std::byte{99};
  expect_right(in, 1);
  ends_[1]->release(in.recv);
  EXPECT_TRUE(mem_free(memory).ok());
}

TEST_F(ShmTransportTest, DeliversWhatWasSentBeforeALeave) {
  make(2);
  Message& out = send_new(0, 1, 1, 50'000);
  ASSERT_TRUE(sent(out));
  ends_[0]->close(0);
  Message& in = messages_.emplace_back();
  in.data.resize(50'000);
  in.target = {in.data.data(), in.data.size()};
  in.recv.tag.operation = 1;
  in.recv.bytes = in.data.size();
  in.recv.pieces = {&in.target, 1};
  ASSERT_TRUE(ends_[1]->post_recv(in.recv).ok());
  while (!done(in)) {
    const Result<bool> moved = ends_[1]->progress();
    ASSERT_TRUE(moved.ok()) << moved.error().message;
  }
  expect_right(in, 1);
  // A message that cannot come any more is an error that names the rank that left.
  Message& never = messages_.emplace_back();
  never.recv.tag.operation = 2;
  ASSERT_TRUE(ends_[1]->post_recv(never.recv).ok());
  Result<bool> moved = ends_[1]->progress();
  while (moved.ok()) moved = ends_[1]->progress();
  EXPECT_NE(moved.error().message.find("rank 0"), std::string::npos) << moved.error().message;
}

// The receiver reads the sender's memory, says so and leaves. Its own link to the sender may be in any state.
TEST_F(ShmTransportTest, APeerThatReadEverythingAndLeftIsNoErrorForTheSender) {
  constexpr size_t kBytes = 100'000;
  auto* const memory = static_cast<std::byte*>(mem_alloc(kBytes).value());
  // The sender's rounds after the message was read.
  for (int rounds = 0; rounds < 12; ++rounds) {
    SCOPED_TRACE(rounds);
    ends_.clear();
    messages_.clear();
    make(2);
    std::vector<Message*> out;
    for (uint64_t n = 1; n <= 3; ++n) {
      out.push_back(&messages_.emplace_back());
      share(*out.back(), memory, kBytes);
      send(*out.back(), 0, 1, n);
    }
    for (uint64_t n = 1; n <= 3; ++n) {
      Message& in = messages_.emplace_back();
      in.recv.tag.operation = n;
      in.recv.bytes = kBytes;
      ASSERT_TRUE(ends_[1]->post_recv(in.recv).value());
      while (!done(in)) ASSERT_TRUE(ends_[1]->progress().ok());
      ends_[1]->release(in.recv);
    }
    const auto drive_sender = [&](int times) {
      for (int i = 0; i < times; ++i) {
        const Result<bool> moved = ends_[0]->progress();
        ASSERT_TRUE(moved.ok()) << moved.error().message;
      }
    };
    drive_sender(rounds);
    ends_[1]->close(0);
    drive_sender(1000);
    for (const Message* message : out) EXPECT_TRUE(sent(*message));
  }
  EXPECT_TRUE(mem_free(memory).ok());
}

// Answers that did not fit in the lane are sent with the goodbye.
TEST_F(ShmTransportTest, WhatWasReadIsSaidEvenWhereTheLaneIsFull) {
  constexpr uint64_t kMessages = 1000;
  constexpr size_t kBytes = 8192;
  make(2);
  auto* const memory = static_cast<std::byte*>(mem_alloc(kBytes).value());
  std::vector<Message*> out;
  for (uint64_t n = 1; n <= kMessages; ++n) {
    Message& message = messages_.emplace_back();
    share(message, memory, kBytes);
    send(message, 0, 1, n);
    out.push_back(&message);
  }
  for (uint64_t n = 1; n <= kMessages; ++n) {  // the sender does nothing, so the lane to it fills up
    Message& in = messages_.emplace_back();
    in.recv.tag.operation = n;
    in.recv.bytes = kBytes;
    ASSERT_TRUE(ends_[1]->post_recv(in.recv).value());
    while (!done(in)) ASSERT_TRUE(ends_[1]->progress().ok());
    ends_[1]->release(in.recv);
  }
  ends_[1]->close(0);
  const auto all_sent = [&] { return std::all_of(out.begin(), out.end(), [](const Message* m) { return sent(*m); }); };
  for (int i = 0; i < 1000 && !all_sent(); ++i) {
    const Result<bool> moved = ends_[0]->progress();
    ASSERT_TRUE(moved.ok()) << moved.error().message;
  }
  EXPECT_TRUE(all_sent());
  EXPECT_TRUE(mem_free(memory).ok());
}

}  // namespace
}  // namespace trestle
