// The wrapper of CUDA's driver on a GPU: memory, streams, gates and marks both ways, and errors.
#include <cstring>
#include <vector>

#include "device/gate.h"
#include "gpu/first_device.h"

namespace trestle {
namespace {

class GpuDevice : public OnFirstDevice {};

TEST_F(GpuDevice, KnowsWhatItsPointersAre) {
  std::byte* const memory = device_->allocate(1 << 20).value();
  std::byte* const pinned = device_->allocate_pinned(4096).value();
  std::vector<std::byte> host(1 << 20);
  const PointerInfo info = devices_->look_at(memory + 1000).value();
  EXPECT_EQ(info.kind, PointerKind::kDevice);
  EXPECT_EQ(info.device, 0);
  EXPECT_EQ(info.base, memory);
  EXPECT_EQ(devices_->look_at(pinned).value().kind, PointerKind::kPinnedHost);
  EXPECT_EQ(devices_->look_at(host.data()).value().kind, PointerKind::kHost);
  ASSERT_TRUE(device_->pin(host.data(), host.size()).ok());
  EXPECT_EQ(devices_->look_at(host.data()).value().kind, PointerKind::kPinnedHost);
  EXPECT_TRUE(device_->unpin(host.data()).ok());
  const MemoryTicket ticket = device_->share(memory + 1000).value();
  EXPECT_EQ(ticket.offset, 1000U);
  EXPECT_TRUE(device_->free_pinned(pinned).ok());
  EXPECT_TRUE(device_->free(memory).ok());
}

TEST_F(GpuDevice, CopiesAndTimes) {
  std::byte* const memory = device_->allocate(1 << 20).value();
  std::byte* const pinned = device_->allocate_pinned(1 << 20).value();
  EventHandle* const first = device_->make_event(true, false).value();
  EventHandle* const second = device_->make_event(true, false).value();
  ASSERT_TRUE(device_->record(first, stream_).ok());
  ASSERT_TRUE(device_->fill(memory, std::byte{9}, 1 << 20, stream_).ok());
  ASSERT_TRUE(device_->copy(pinned, memory, 1 << 20, stream_).ok());
  ASSERT_TRUE(device_->record(second, stream_).ok());
  finish();
  EXPECT_EQ(pinned[(1 << 20) - 1], std::byte{9});
  EXPECT_TRUE(device_->is_done(second).value());
  EXPECT_GT(device_->elapsed_ms(first, second).value(), 0.F);
  for (EventHandle* const event : {first, second}) EXPECT_TRUE(device_->destroy_event(event).ok());
  EXPECT_TRUE(device_->free_pinned(pinned).ok());
  EXPECT_TRUE(device_->free(memory).ok());
}

TEST_F(GpuDevice, KnowsItsOwnStreams) {
  for (StreamHandle* const stream : {stream_, static_cast<StreamHandle*>(nullptr)}) {
    const Status checked = device_->check_stream(stream);
    EXPECT_TRUE(checked.ok()) << checked.error().message;
    EXPECT_FALSE(device_->is_capturing(stream).value());
  }
}

TEST_F(GpuDevice, GatesHoldItsStreamsBothWays) {
  for (const GateWay way : {GateWay::kWord, GateWay::kHost}) {
    if (way == GateWay::kWord && !device_->supports_word_waits()) continue;
    const auto gate = Gate::create(*device_, way).value();
    const auto mark = Mark::create(*device_, way, 4).value();
    const uint32_t before = mark->put(stream_).value();
    const uint32_t ticket = gate->hold(stream_).value();
    const uint32_t after = mark->put(stream_).value();
    while (!Mark::is_past(mark->reached().value(), before)) {
    }
    EXPECT_FALSE(device_->is_idle(stream_).value());
    EXPECT_FALSE(Mark::is_past(mark->reached().value(), after));
    gate->open(ticket);
    finish();
    EXPECT_TRUE(Mark::is_past(mark->reached().value(), after));
  }
}

TEST_F(GpuDevice, RefusesMoreMemoryThanItHas) {
  const auto refused = device_->allocate(uint64_t{1} << 50);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kSystemError);
  EXPECT_NE(refused.error().message.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(device_->synchronize(stream_).ok()) << "the device is not broken by it";
}

}  // namespace
}  // namespace trestle
