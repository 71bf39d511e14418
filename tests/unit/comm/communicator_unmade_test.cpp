// A communicator whose making fails at its very end. Threads of the process may look at it at that moment.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "comm/communicator/communicator.h"
#include "comm/setup/wiring.h"
#include "comm/watch/process_exit.h"
#include "rendezvous/bootstrap.h"
#include "transport/auth/handshake.h"

namespace trestle {
namespace communicator_unmade_test {
namespace communicator_unmade_test {
namespace {

CommunicatorSettings settings_that_measure() {
  auto made = make_settings(
      parse_config({{"TRESTLE_CALIBRATE", "full"}, {"TRESTLE_EXPRESS", "0"}, {"TRESTLE_SOCKET_IFNAME", "lo"}}), {});
  EXPECT_TRUE(made.ok());
  made.value().config.calibration_folder.clear();
  return made.value();
}

// Rank 1 of two, which comes as far as the links are measured, and takes no part in that. So rank 0 waits there.
class SilentRank {
 public:
  SilentRank(const UniqueIdBytes& id, const CommunicatorSettings& settings)
      : settings_(settings), thread_([this, id] { come(id); }) {}
  ~SilentRank() { thread_.join(); }

 private:
  void come(const UniqueIdBytes& id) {
    auto joined = Bootstrap::join(bootstrap_config(settings_.config, 2, 1, id));
    ASSERT_TRUE(joined.ok()) << joined.error().message;
    bootstrap_ = std::move(joined).value();
    kin_ = root_kin({1, 2, to_hex(bootstrap_->job()), bootstrap_->secret()});
    auto wired = wire(*bootstrap_, settings_, kin_, no_device_, kNoDeadline);
    ASSERT_TRUE(wired.ok()) << wired.error().message;
    wiring_ = std::move(wired).value();
    EXPECT_TRUE(bootstrap_->barrier(kNoDeadline).ok());
  }

  const CommunicatorSettings settings_;
  DevicePlace no_device_;
  HostKin kin_;
  std::unique_ptr<Bootstrap> bootstrap_;
  Wiring wiring_;
  std::thread thread_;
};

// As the watch thread does when it answers other ranks.
std::shared_ptr<LivingCommunicator> look(const std::atomic<bool>& over) {
  while (!over) {
    if (const auto living = living_communicators(); !living.empty()) return living.front();
    std::this_thread::yield();
  }
  return nullptr;
}

// A thread that held it a moment longer would end it, and the watch thread would wait for itself there.
TEST(CommunicatorUnmade, HasEndedWhoeverStillLooksAtIt) {
  if (!handshake_probe().ok()) GTEST_SKIP() << handshake_probe().error().message;
  const CommunicatorSettings settings = settings_that_measure();
  const auto id = make_unique_id(bootstrap_config(settings.config, 1, 0, {}), 0);
  ASSERT_TRUE(id.ok()) << id.error().message;
  const SilentRank other(id.value(), settings);
  std::atomic<bool> stop{false};
  std::atomic<bool> over{false};
  std::shared_ptr<LivingCommunicator> held;
  std::thread onlooker([&] {
    held = look(over);
    stop = true;
  });
  const auto made = Communicator::create(id.value(), 2, 0, settings, stop);
  over = true;
  onlooker.join();
  ASSERT_NE(held, nullptr);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kAborted) << made.error().message;
  EXPECT_TRUE(living_communicators().empty());
}

}  // namespace
}  // namespace communicator_unmade_test
}  // namespace communicator_unmade_test
}  // namespace trestle
