// Shared by the transport conformance tests: endpoints of one job in this process, messages that own their memory, and
// loops that drive endpoints until a condition holds. One thread at a time per endpoint, as the contract of transport.h
// requires.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "transport/catalog.h"
#include "transport/transport.h"

namespace trestle {

inline constexpr uint64_t kTestEager = 8 * 1024;

EndpointConfig test_config(int32_t rank, int32_t ranks, const std::string& job);
// On the loopback device.
TransportOptions test_options();
std::string test_name(int32_t rank);
// A job id that no other test of this process uses.
std::string fresh_job();

// All endpoints of one job. Addresses are exchanged in memory. A gtest failure if one cannot be made.
class Endpoints {
 public:
  Endpoints(const std::string& transport, int32_t ranks, uint64_t eager_bytes = kTestEager);
  Transport& operator[](int32_t rank) { return *transports_[rank]; }
  int32_t size() const { return static_cast<int32_t>(transports_.size()); }
  void destroy(int32_t rank) { transports_[rank].reset(); }

  // Drives all living endpoints in turn until `done`, which must become true. Returns false, with a gtest failure, on
  // an error or after a minute without events.
  bool drive(const std::function<bool()>& done);
  // Drives a fixed number of rounds, to check that something does not happen.
  bool drive_rounds(int rounds);
  // Drives until `rank`'s progress() returns an error, and returns it.
  Error drive_to_error(int32_t rank);

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

// Runs `step` until `done`. Returns false if that takes longer than any machine should need.
bool drive_until(const std::function<Status()>& step, const std::function<bool()>& done);

// The bytes of the message `tag`: a function of the tag and the offset.
std::vector<std::byte> content(const MessageTag& tag, size_t bytes);

class Outgoing {
 public:
  // Cut into `pieces` pieces at random offsets, each in its own memory.
  Outgoing(int32_t peer, const MessageTag& tag, size_t bytes, size_t pieces = 1);
  bool done() const { return request.state == RequestState::kDone; }
  void overwrite();

  SendRequest request;

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<ConstPiece> pieces_;
};

class Incoming {
 public:
  // `pieces` 0: a view.
  Incoming(int32_t peer, const MessageTag& tag, size_t bytes, size_t pieces = 1);
  bool done() const { return request.state == RequestState::kDone; }
  // The received bytes, from pieces or the view.
  std::vector<std::byte> data() const;
  ::testing::AssertionResult right() const;

  RecvRequest request;

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Piece> pieces_;
};

// Posts a send. Drives all endpoints while the answer is "try again".
void post(Endpoints& endpoints, int32_t rank, Outgoing& message);
void post(Endpoints& endpoints, int32_t rank, Incoming& message);

// One case per catalog row that works on this machine.
class TransportTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
};
std::vector<std::string> transport_names();

}  // namespace trestle
