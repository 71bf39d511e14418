// Whether devices read each other's memory: asked, proved with bytes, and without traces where the driver fails.
#include "comm/device/peer_reach.h"

#include <cuda.h>

#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

class PeerReach : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    reader_ = std::make_unique<OpenedDevice>(std::move(device_));
    owner_ = std::make_unique<OpenedDevice>(std::move(peer_));
    kernels_ = reader_->kernels().value();
  }
  void TearDown() override {
    kernels_.reset();
    reader_.reset();
    owner_.reset();
    WithFakeDriver::TearDown();
  }
  std::string refusal() {
    const Status reached = reach_and_verify(*reader_, *owner_);
    return reached.ok() ? "" : reached.error().message;
  }

  std::unique_ptr<OpenedDevice> reader_;
  std::unique_ptr<OpenedDevice> owner_;
  std::shared_ptr<DeviceKernels> kernels_;
};

TEST_F(PeerReach, IsProvedAndLeavesNothing) {
  const FakeObjects before = fake().objects();
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(), "") << "again, when access is there already";
  EXPECT_EQ(fake().objects(), before);
}

TEST_F(PeerReach, OfADeviceToItselfAsksNobody) {
  const int before = fake().calls();
  EXPECT_TRUE(reach_and_verify(*reader_, *reader_).ok());
  EXPECT_EQ(fake().calls(), before);
}

TEST_F(PeerReach, ThatTheDriverDoesNotHaveIsSaid) {
  fake().set_peer_access(false);
  const std::string sentence = refusal();
  EXPECT_NE(sentence.find("device 0"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("device 1"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("no path"), std::string::npos) << sentence;
}

TEST_F(PeerReach, ThatDeliversOtherBytesIsSaid) {
  fake().break_peer_access(true);
  const std::string sentence = refusal();
  EXPECT_NE(sentence.find("other bytes than were written"), std::string::npos) << sentence;
}

int held(const FakeObjects& objects) {
  return objects.memory + objects.pinned + objects.streams;
}

// Wherever the driver fails, the answer is a sentence, and what the attempt took is given back. What the driver could
// not even be asked to take back stays.
TEST_F(PeerReach, FailsAtEveryCallWithoutALeak) {
  leaks_ = true;
  const int first = fake().calls();
  ASSERT_EQ(refusal(), "");
  const int calls = fake().calls() - first;
  EXPECT_GT(calls, 15);
  int refused = 0;
  for (int nth = 0; nth < calls; ++nth) {
    SCOPED_TRACE(nth);
    const int before = held(fake().objects());
    fake().fail(nth, CUDA_ERROR_UNKNOWN);
    const std::string sentence = refusal();
    if (!sentence.empty()) {
      ++refused;
      EXPECT_NE(sentence.find("where it lies: cu"), std::string::npos) << sentence;
    }
    EXPECT_LE(held(fake().objects()) - before, sentence.empty() ? 1 : 0);
    EXPECT_EQ(fake().objects().pushed, 0);
  }
  EXPECT_GT(refused, calls / 2);
}

}  // namespace
}  // namespace trestle
