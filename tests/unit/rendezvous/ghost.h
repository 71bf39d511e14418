// A simulated rank. It sends what a rank sends at a rendezvous, but only as much as the test wants.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/message.h"
#include "transport/auth/handshake_exchange.h"
#include "trestle/trestle.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {

class Ghost {
 public:
  Ghost(const SocketAddress& root, Credentials credentials, int32_t nranks)
      : nranks_(nranks), rank_(credentials.rank), credentials_(std::move(credentials)) {
    socket_ = connect_before({&root, 1}, {}).value();
  }
  // At the rendezvous of a unique id.
  Ghost(const UniqueIdBytes& id, int32_t nranks, int32_t rank)
      : Ghost(decode(id).value().addresses.front(), credentials_of(id, rank), nranks) {}

  std::string name() const { return "rank " + std::to_string(rank_) + " (host of a ghost, pid 7)"; }
  void forget_secret() { credentials_.secret[0] ^= std::byte{1}; }
  Status authenticate() {
    HandshakeExchange exchange(Role::kInitiator, Purpose::kRendezvous, credentials_);
    return exchange.run_before(socket_.get(), {});
  }
  // lineage: of its process; empty: not known. time_left_ns: until it gives up; 0: never.
  void ask(const std::vector<uint64_t>& lineage = {}, int64_t time_left_ns = 0) {
    JoinRequest request;
    request.version = TRESTLE_VERSION_CODE;
    request.nranks = nranks_;
    request.rank = rank_;
    request.address = format_address(listener_.address);
    request.name = name();
    request.lineage = lineage;
    request.time_left_ns = time_left_ns;
    say(encode(request));
  }
  JoinAnswer hear() {
    std::string header(4, '\0');
    const Status read = receive_all_before(socket_.get(), std::as_writable_bytes(std::span(header)), {});
    if (!read.ok()) return {read.error(), {}, {}, 0, {}, {}, {}};
    size_t length = 0;
    for (size_t i = 4; i-- > 0;) length = length << 8 | static_cast<uint8_t>(header[i]);
    std::string body(length, '\0');
    EXPECT_TRUE(receive_all_before(socket_.get(), std::as_writable_bytes(std::span(body)), {}).ok());
    return decode_join_answer(body).value();
  }
  void report(const Error& error) { say(encode(JoinReport{error})); }
  void die() {
    socket_.reset();
    listener_.fd.reset();
  }
  // Its port must neither accept nor refuse connections, so that no rank waits for an answer.
  const Listener& listener() const { return listener_; }

 private:
  static Credentials credentials_of(const UniqueIdBytes& id, int32_t rank) {
    const UniqueId plain = decode(id).value();
    return {{plain.secret.begin(), plain.secret.end()}, plain.job, rank};
  }
  void say(const std::string& message) {
    const std::string bytes = framed(message);
    ASSERT_TRUE(send_all_before(socket_.get(), std::as_bytes(std::span(bytes)), {}).ok());
  }
  const int32_t nranks_;
  const int32_t rank_;
  Listener listener_ = taken_port();
  UniqueFd socket_;
  Credentials credentials_;
};

}  // namespace trestle
