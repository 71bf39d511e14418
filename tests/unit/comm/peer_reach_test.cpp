// Whether devices read each other's memory: asked, proved with bytes, and without traces where the driver fails.
#include "comm/device/peer_reach.h"

#include <cuda.h>

#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace peer_reach_test {
namespace {

class PeerReach : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    reader_ = end_of(*device_);
    owner_ = end_of(*peer_);
  }
  void TearDown() override {
    reader_ = owner_ = {};
    probes_.clear();
    WithFakeDriver::TearDown();
  }
  PeerEnd end_of(Device& device) {
    probes_.push_back(PeerProbe::create(device).value());
    return {&device, probes_.back().get(), DeviceKernels::create(device).value()};
  }
  void expect_refused(bool promised, const std::string& why) {
    const Result<PeerAnswer> answer = reach_and_verify(reader_, owner_);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_FALSE(answer.value().reaches);
    EXPECT_EQ(answer.value().promised, promised);
    for (const std::string& fact : {std::string("device 0"), std::string("device 1"), why})
      EXPECT_NE(answer.value().why.find(fact), std::string::npos) << answer.value().why;
  }
  void expect_reached() {
    const Result<PeerAnswer> answer = reach_and_verify(reader_, owner_);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_TRUE(answer.value().reaches) << answer.value().why;
  }

  std::vector<std::unique_ptr<PeerProbe>> probes_;
  PeerEnd reader_;
  PeerEnd owner_;
};

// The driver may let whoever allocates or frees memory wait for streams that are held until a call ends.
TEST_F(PeerReach, IsProvedWithoutSlowCalls) {
  const FakeObjects before = fake().objects();
  fake().forbid_slow_calls_beside_work(true);
  expect_reached();
  expect_reached();  // access is there already
  EXPECT_EQ(fake().objects(), before);
}

TEST_F(PeerReach, OfADeviceToItselfAsksNobody) {
  const int before = fake().calls();
  EXPECT_TRUE(reach_and_verify(reader_, reader_).value().reaches);
  EXPECT_EQ(fake().calls(), before);
}

TEST_F(PeerReach, ThatTheDriverDoesNotHaveIsSaid) {
  fake().set_peer_access(false);
  expect_refused(false, "the driver knows of no path");
}

TEST_F(PeerReach, ThatDeliversOtherBytesIsSaid) {
  fake().break_peer_access(true, false);
  expect_refused(true, "a copy read other bytes than were written");
  fake().break_peer_access(false, true);
  expect_refused(true, "a kernel read other bytes than were written");
  fake().break_peer_access(false, false);
  fake().break_peer_writes(true);
  expect_refused(true, "a kernel that writes there has left other bytes");
  fake().break_peer_writes(false);
  expect_reached();
}

TEST_F(PeerReach, ThatDoesNotAnswerIsGivenUp) {
  fake().hold_streams(true);
  expect_refused(true, "is busy");
  fake().hold_streams(false);
  expect_reached();
}

// Wherever the driver fails, the answer is a sentence, and the next attempt finds the path.
TEST_F(PeerReach, IsFoundAfterAFailure) {
  const FakeObjects before = fake().objects();
  const int first = fake().calls();
  expect_reached();
  const int calls = fake().calls() - first;
  EXPECT_GT(calls, 15);
  int failed = 0;
  for (int nth = 0; nth < calls; ++nth) {
    SCOPED_TRACE(nth);
    fake().fail(nth, CUDA_ERROR_UNKNOWN);
    const Result<PeerAnswer> answer = reach_and_verify(reader_, owner_);
    const std::string sentence = answer.ok() ? answer.value().why : answer.error().message;
    if (!sentence.empty()) {
      ++failed;
      EXPECT_NE(sentence.find("cu"), std::string::npos) << sentence;
    }
    fake().fail(-1, 0);
    expect_reached();
    EXPECT_EQ(fake().objects(), before);
  }
  EXPECT_GT(failed, calls / 2);
}

TEST_F(PeerReach, AProbeThatIsNotMadeLeavesNothing) {
  const FakeObjects before = fake().objects();
  for (int nth = 0; nth < 2; ++nth) {
    fake().refuse_memory(nth);
    const auto probe = PeerProbe::create(*device_);
    EXPECT_EQ(probe.error().code, Code::kSystemError);
    EXPECT_EQ(fake().objects(), before);
  }
}

}  // namespace
}  // namespace peer_reach_test
}  // namespace trestle
