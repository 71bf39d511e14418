// The simulated transport also compares arriving messages with the operation that the rank runs.
#include <gtest/gtest.h>

#include "sim/network.h"
#include "transport/agreement.h"

namespace trestle {
namespace same_operation_test {
namespace {

class SimAgreement : public ::testing::Test {
 protected:
  SimAgreement() {
    Dimension dimension;
    dimension.size = 2;
    topology.dimensions.push_back(dimension);
    network = std::make_unique<SimNetwork>(topology, std::vector<SimLink>{{1000, 1000}}, SimFaults{}, true, clock);
    for (int32_t r = 0; r < 2; ++r) {
      transports.push_back(network->make_transport(r));
      agreements.push_back(std::make_unique<Agreement>(r, std::vector<std::string>{}));
      transports[r]->set_agreement(agreements[r].get());
    }
  }
  Result<bool> send(MessageTag tag) {
    request.peer = 1;
    request.tag = tag;
    return transports[0]->post_send(request);
  }

  Topology topology;
  VirtualClock clock;
  std::unique_ptr<SimNetwork> network;
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::unique_ptr<Agreement>> agreements;
  SendRequest request;
};

TEST_F(SimAgreement, TheReceiverHears) {
  ASSERT_TRUE(agreements[1]->announce(4, 1));
  ASSERT_TRUE(send({4, 0, 0, 0, 1}).value());
  ASSERT_TRUE(transports[1]->progress().ok());
  ASSERT_TRUE(send({4, 0, 1, 0, 2}).value());
  EXPECT_EQ(transports[1]->progress().error().code, Code::kInvalidUsage);
}

TEST_F(SimAgreement, WhoStartsLaterHearsOfWhatCame) {
  ASSERT_TRUE(send({4, 0, 0, 0, 2}).value());
  ASSERT_TRUE(transports[1]->progress().ok());
  EXPECT_FALSE(agreements[1]->announce(4, 1));
}

TEST_F(SimAgreement, NoticesAreHeard) {
  ASSERT_TRUE(agreements[1]->announce(4, 1));
  ASSERT_TRUE(send({4, kNoticePhase, 0, 0, 2}).value());
  EXPECT_EQ(request.state, RequestState::kDone);
  EXPECT_FALSE(transports[1]->progress().ok());
}

}  // namespace
}  // namespace same_operation_test
}  // namespace trestle
