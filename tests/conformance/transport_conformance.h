// What the transport conformance tests share: endpoints of one job in this process, messages that own their memory, and
// driving until something is so. One thread at a time per endpoint, as the contract of transport.h says.
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

// All endpoints of one job, addresses exchanged in memory. gtest failures when one cannot be made.
class Endpoints {
 public:
  Endpoints(const std::string& transport, int32_t ranks, uint64_t eager_bytes = kTestEager);
  Transport& operator[](int32_t rank) { return *transports_[rank]; }
  int32_t size() const { return static_cast<int32_t>(transports_.size()); }
  void destroy(int32_t rank) { transports_[rank].reset(); }

  // Drives all (living) endpoints in turn until `done`, which must come; false, and a failure, on an error or when
  // nothing has happened for a minute.
  bool drive(const std::function<bool()>& done);
  // A fixed number of rounds, for what must not happen.
  bool drive_rounds(int rounds);
  // Drives until `rank`'s progress() returns an error, and returns it.
  Error drive_to_error(int32_t rank);

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

// Until `done`, by any means that make progress; false when that takes longer than any machine should need.
bool drive_until(const std::function<Status()>& step, const std::function<bool()>& done);

// The bytes of the message `tag`: a function of the tag and the place.
std::vector<std::byte> content(const MessageTag& tag, size_t bytes);

class Outgoing {
 public:
  // Cut into `pieces` pieces at random places, each in memory of its own.
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
  // What has arrived, whether in pieces or in view.
  std::vector<std::byte> data() const;
  ::testing::AssertionResult right() const;

  RecvRequest request;

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Piece> pieces_;
};

// Posts, driving all endpoints while the answer is "try again".
void post(Endpoints& endpoints, int32_t rank, Outgoing& message);
void post(Endpoints& endpoints, int32_t rank, Incoming& message);

// One per catalog row that can be used here.
class TransportTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
};
std::vector<std::string> transport_names();

}  // namespace trestle
