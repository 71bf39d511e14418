// Memory that cannot be had at any point of a message over shared memory: the transport can still be closed, and leaves
// no descriptor behind. Two ranks of one thread, so each request fails in turn.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "conformance/faults/fault_points.h"
#include "support/open_descriptors.h"
#include "transport/shm/shm.h"

namespace trestle {
namespace {

constexpr size_t kBytes = 100'000;  // more than a lane's slots hold, so a second segment is made and sent

EndpointConfig config_of(int32_t rank) {
  EndpointConfig config;
  config.rank = rank;
  config.ranks = 2;
  config.job = "shm faults test";
  config.secret.assign(32, std::byte{3});
  return config;
}

class Pair {
 public:
  void make() {
    std::vector<std::string> addresses;
    for (int32_t rank = 0; rank < 2; ++rank) {
      ends_.push_back(make_shm_transport(config_of(rank), {}).value());
      addresses.push_back(ends_.back()->address());
    }
    for (const auto& end : ends_) ASSERT_TRUE(end->set_peers(addresses, {"rank 0", "rank 1"}).ok());
  }

  // A message from rank 0 to rank 1. False: it could not be had.
  bool exchange() {
    recv_.peer = 0;
    send_.peer = 1;
    send_.bytes = recv_.bytes = kBytes;
    send_.pieces = {&source_, 1};
    recv_.pieces = {&target_, 1};
    if (!ends_[1]->post_recv(recv_).ok()) return false;
    bool posted = false;
    while (!posted || send_.state != RequestState::kDone || recv_.state != RequestState::kDone) {
      if (!posted) {
        const Result<bool> post = ends_[0]->post_send(send_);
        if (!post.ok()) return false;
        posted = post.value();
      }
      for (const auto& end : ends_) {
        if (!end->progress().ok()) return false;
      }
    }
    return true;
  }

  void close() {
    for (const auto& end : ends_) end->close(0);
    ends_.clear();
  }

 private:
  std::vector<std::unique_ptr<Transport>> ends_;
  std::vector<std::byte> from_ = std::vector<std::byte>(kBytes, std::byte{7});
  std::vector<std::byte> to_ = std::vector<std::byte>(kBytes);
  ConstPiece source_{from_.data(), kBytes};
  Piece target_{to_.data(), kBytes};
  SendRequest send_;
  RecvRequest recv_;
};

bool is_survived(faults::Kind kind, long nth) {
  Pair pair;
  pair.make();
  faults::arm(kind, nth);
  faults::set_counted(true);
  const bool arrived = pair.exchange();
  faults::set_counted(false);
  const bool failed = faults::disarm();
  pair.close();
  EXPECT_TRUE(failed || arrived);
  return failed;
}

TEST(ShmFaults, LeaveATransportThatCanBeClosed) {
  faults::exempt_this_thread();
  for (const faults::Kind kind : faults::kKinds) {
    is_survived(kind, -1);
    const std::multiset<std::string> before = open_descriptors();
    for (long nth = 0; is_survived(kind, nth) && !HasFailure(); ++nth) {
      EXPECT_EQ(open_descriptors(), before) << "after " << faults::name_of(kind) << " request " << nth;
    }
  }
}

}  // namespace
}  // namespace trestle
