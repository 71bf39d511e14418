// How many connections a place that listens takes in one turn, and what it does when it cannot take one.
#include <gtest/gtest.h>

#include <vector>

#include "support/no_descriptors.h"
#include "transport/auth/admission.h"

namespace trestle {
namespace {

Listener some_port() {
  SocketAddress any = parse_address("127.0.0.1:1").value();
  any.set_port(0);
  return listen_tcp_at(any).value();
}

TEST(Admission, TakesSomeInATurnAndSaysThatMoreWait) {
  const Listener listener = some_port();
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < Admission::kMostAtOnce + 3; ++i)
    crowd.push_back(connect_before({&listener.address, 1}, {}).value());
  Admission admission;
  EXPECT_FALSE(admission.more_wait());
  int taken = 0;
  const auto admit = [&taken](UniqueFd fd) { taken += fd ? 1 : 0; };
  EXPECT_TRUE(admission.take(listener.fd.get(), 0, admit).ok());
  EXPECT_EQ(taken, Admission::kMostAtOnce);
  EXPECT_TRUE(admission.more_wait());
  EXPECT_TRUE(admission.take(listener.fd.get(), 0, admit).ok());
  EXPECT_EQ(taken, Admission::kMostAtOnce + 3);
  EXPECT_FALSE(admission.more_wait());
}

// Whoever polls a listener that stays readable would spin.
TEST(Admission, PausesAfterAFailure) {
  Admission admission;
  EXPECT_FALSE(admission.pauses(0));
  constexpr int kNoListener = -1;
  constexpr int64_t kNow = 1000;
  const Status taken = admission.take(kNoListener, kNow, [](UniqueFd) { ADD_FAILURE(); });
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, Code::kSystemError);
  EXPECT_FALSE(admission.more_wait());
  EXPECT_EQ(admission.resumes_ns(), kNow + Admission::kPauseNs);
  EXPECT_TRUE(admission.pauses(kNow));
  EXPECT_TRUE(admission.pauses(admission.resumes_ns() - 1));
  EXPECT_FALSE(admission.pauses(admission.resumes_ns()));
}

// accept() fails without descriptors even if nobody waits. That is no failure: a place would pause, warn, and drop
// strangers to make room.
TEST(Admission, WithoutDescriptorsAndWithoutAQueueNothingFails) {
  const Listener listener = some_port();
  Admission admission;
  Status taken;
  {
    const NoDescriptorsLeft none;
    taken = admission.take(listener.fd.get(), 0, [](UniqueFd) { ADD_FAILURE(); });
  }
  EXPECT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_FALSE(admission.pauses(0));
}

}  // namespace
}  // namespace trestle
