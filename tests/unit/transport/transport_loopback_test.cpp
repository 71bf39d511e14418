// The end of a loopback endpoint whose memory a peer still reads.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "transport/loopback/loopback.h"

namespace trestle {
namespace {

constexpr size_t kBytes = 1000;

// Rank 1 has a view of a message of rank 0: it reads rank 0's memory.
class LoopbackReader : public testing::Test {
 protected:
  static std::unique_ptr<Transport> endpoint(int32_t rank, LoopbackTransportOptions options = {}) {
    EndpointConfig config;
    config.rank = rank;
    config.ranks = 2;
    config.job = "a reader";
    return make_loopback_transport(config, std::move(options)).value();
  }
  void begin_reading(LoopbackTransportOptions options) {
    owner_ = endpoint(0, std::move(options));
    reader_ = endpoint(1);
    send_.peer = 1;
    send_.pieces = {&piece_, 1};
    send_.bytes = view_.bytes = kBytes;
    view_.peer = 0;
    ASSERT_TRUE(owner_->post_send(send_).ok());
    ASSERT_TRUE(reader_->post_recv(view_).ok());
    ASSERT_TRUE(reader_->progress().ok());
    ASSERT_EQ(view_.state, RequestState::kDone);
    ASSERT_EQ(view_.view.front().data, memory_.data());
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
  const ConstPiece piece_{memory_.data(), memory_.size()};
  SendRequest send_;
  RecvRequest view_;
  std::unique_ptr<Transport> owner_;
  std::unique_ptr<Transport> reader_;
};

TEST_F(LoopbackReader, IsWaitedForAsLongAsItIsDriven) {
  int rounds = 0;
  begin_reading({.drive_peers = [&] {
    if (++rounds == 3) reader_->release(view_);
    return true;
  }});
  owner_->close(0);
  EXPECT_EQ(rounds, 3);
}

TEST_F(LoopbackReader, EndsWhenItIsClosed) {
  bool closed = false;
  begin_reading({.drive_peers = [&] {
    EXPECT_FALSE(reader_->progress().ok()) << "it hears of the end";
    reader_->close(0);
    return closed = true;
  }});
  owner_->close(0);
  EXPECT_TRUE(closed);
}

// For example because the process exits: then nobody frees the memory.
TEST_F(LoopbackReader, KeepsNobodyFromEndingWhereItIsNotDriven) {
  begin_reading({.drive_peers = [] { return false; }});
  owner_->close(0);
  EXPECT_EQ(view_.state, RequestState::kDone);
}

}  // namespace
}  // namespace trestle
