// The wrapper of CUDA's driver over a fake driver: finding devices, memory, streams, events, and every failure.
#include <cuda.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <vector>
#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

class Driver : public WithFakeDriver {
 protected:
  Error refused() {
    auto devices = open_devices(TRESTLE_FAKE_DRIVER);
    EXPECT_FALSE(devices.ok());
    return devices.ok() ? Error{Code::kSuccess, ""} : devices.error();
  }
};

TEST_F(Driver, ThatIsNotThereIsSaid) {
  auto devices = open_devices("libno-such-driver.so.1");
  ASSERT_FALSE(devices.ok());
  EXPECT_EQ(devices.error().code, Code::kInvalidUsage);
  EXPECT_NE(devices.error().message.find("libno-such-driver.so.1"), std::string::npos) << devices.error().message;
}

TEST_F(Driver, WithoutAFunctionNamesIt) {
  fake().hide("cuStreamWaitValue32");
  EXPECT_NE(refused().message.find("cuStreamWaitValue32"), std::string::npos);
}

// A name may stand for another signature in a later version of CUDA; the fake driver finds who asks for that one.
TEST_F(Driver, IsAskedForTheSignaturesThatAreCalled) {
  const auto devices = open_devices(TRESTLE_FAKE_DRIVER);
  EXPECT_EQ(fake().misuse(), "");
  ASSERT_TRUE(devices.ok()) << devices.error().message;
}

TEST_F(Driver, OfAnOlderMajorVersionIsRefusedWithBothVersions) {
  fake().set_version(12080);
  const Error error = refused();
  EXPECT_EQ(error.code, Code::kInvalidUsage);
  EXPECT_NE(error.message.find("12.8"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(std::to_string(CUDA_VERSION / 1000) + "."), std::string::npos) << error.message;
}

TEST_F(Driver, WithoutItsVersionIsTooOld) {
  fake().hide("cuDriverGetVersion");
  EXPECT_NE(refused().message.find("newer driver"), std::string::npos);
}

TEST_F(Driver, WithoutDevicesIsSaid) {
  fake().set_devices(0);
  const Error error = refused();
  EXPECT_EQ(error.code, Code::kInvalidUsage);
  EXPECT_NE(error.message.find("CUDA_ERROR_NO_DEVICE"), std::string::npos) << error.message;
}

class DeviceOfFake : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
  }
};

TEST_F(DeviceOfFake, TellsWhatItIs) {
  EXPECT_EQ(devices_->count(), 2);
  EXPECT_EQ(devices_->driver_version(), CUDA_VERSION);
  EXPECT_EQ(device_->info().name, "Fake GPU");
  EXPECT_EQ(peer_->info().index, 1);
  EXPECT_EQ(peer_->info().pci, "0000:a1:00.0") << "the driver writes capitals";
  EXPECT_EQ(device_->info().compute_capability, 90);
  EXPECT_EQ(device_->info().memory_mbps, 20'480'000u);
  EXPECT_EQ(device_->info().multiprocessors, 4);
  EXPECT_GT(device_->info().bytes, 0U);
  EXPECT_TRUE(device_->supports_word_waits());
}

TEST_F(DeviceOfFake, ThatDoesNotExistIsRefused) {
  for (const int index : {-1, 2}) {
    auto device = devices_->open(index);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, Code::kInvalidArgument);
    EXPECT_NE(device.error().message.find(std::to_string(index)), std::string::npos);
  }
}

TEST_F(DeviceOfFake, KnowsWhereAPointerLies) {
  std::byte* const memory = peer_->allocate(1000).value();
  std::byte* const pinned = device_->allocate_pinned(100).value();
  std::vector<std::byte> host(4096);
  PointerInfo info = devices_->look_at(memory + 999).value();
  EXPECT_EQ(info.kind, PointerKind::kDevice);
  EXPECT_EQ(info.device, 1);
  EXPECT_EQ(info.base, memory);
  EXPECT_EQ(info.bytes, 1000U);
  EXPECT_EQ(devices_->look_at(pinned).value().kind, PointerKind::kPinnedHost);
  info = devices_->look_at(host.data()).value();
  EXPECT_EQ(info.kind, PointerKind::kHost);
  EXPECT_EQ(info.device, -1);
  EXPECT_EQ(devices_->look_at(fake().managed_memory()).value().kind, PointerKind::kManaged);
  ASSERT_TRUE(device_->pin(host.data(), host.size()).ok());
  EXPECT_EQ(devices_->look_at(host.data() + 1).value().kind, PointerKind::kPinnedHost);
  EXPECT_FALSE(device_->pin(host.data(), host.size()).ok()) << "a second time";
  ASSERT_TRUE(device_->unpin(host.data()).ok());
  EXPECT_EQ(devices_->look_at(host.data()).value().kind, PointerKind::kHost);
  fake().move_registered(true);
  const Status moved = device_->pin(host.data(), host.size());
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error().message, "device 0 sees pinned memory at another address than the host");
  EXPECT_EQ(devices_->look_at(host.data()).value().kind, PointerKind::kHost);
  ASSERT_TRUE(peer_->free(memory).ok());
  ASSERT_TRUE(device_->free_pinned(pinned).ok());
}

TEST_F(DeviceOfFake, SharesPartsOfAllocations) {
  std::byte* const memory = device_->allocate(1000).value();
  const MemoryTicket ticket = device_->share(memory + 300).value();
  EXPECT_EQ(ticket.offset, 300U);
  std::byte* const opened = peer_->open(ticket).value();
  EXPECT_EQ(opened, memory + 300);
  ASSERT_TRUE(peer_->close(opened).ok());
  std::byte host{};
  EXPECT_FALSE(device_->share(&host).ok());
  ASSERT_TRUE(device_->free(memory).ok());
}

// A driver that does not know one of the two questions about its memory is no error.
TEST_F(DeviceOfFake, TheSpeedOfItsMemoryMayBeUnknown) {
  for (const int nth : {7, 8}) {  // of the calls that open a device
    fake().fail(nth, CUDA_ERROR_INVALID_VALUE);
    const auto opened = devices_->open(0);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ(opened.value()->info().memory_mbps, 0u);
  }
}

TEST_F(DeviceOfFake, KnowsWhichDevicesNvlinksJoin) {
  EXPECT_FALSE(device_->joined_by_nvlink(peer_->info().pci).value());
  fake().set_nvlinks(true);
  EXPECT_TRUE(device_->joined_by_nvlink(peer_->info().pci).value());
  EXPECT_TRUE(peer_->joined_by_nvlink(device_->info().pci).value());
  EXPECT_FALSE(device_->joined_by_nvlink(device_->info().pci).value()) << "itself";
  EXPECT_FALSE(device_->joined_by_nvlink("0000:00:00.0").value()) << "not seen by this process";
  fake().fail(1, CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(device_->joined_by_nvlink(peer_->info().pci).ok());
}

TEST_F(DeviceOfFake, ReachesPeersIfTheHardwareDoes) {
  EXPECT_TRUE(device_->can_reach(*device_).value());
  EXPECT_TRUE(device_->reach(*device_).ok());
  EXPECT_TRUE(device_->can_reach(*peer_).value());
  EXPECT_TRUE(device_->reach(*peer_).ok());
  EXPECT_TRUE(device_->reach(*peer_).ok()) << "a second time";
  fake().set_peer_access(false);
  EXPECT_FALSE(peer_->can_reach(*device_).value());
  const Status refused = peer_->reach(*device_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("cuCtxEnablePeerAccess"), std::string::npos) << refused.error().message;
}

TEST_F(DeviceOfFake, DoesTheWorkOfAStreamInOrder) {
  StreamHandle* const stream = device_->make_stream(true).value();
  StreamHandle* const other = device_->make_stream(false).value();
  EventHandle* const event = device_->make_event(false, false).value();
  std::byte* const memory = device_->allocate(64).value();
  std::array<std::byte, 64> result{};
  EXPECT_TRUE(device_->is_done(event).value()) << "never recorded";
  fake().hold_streams(true);
  ASSERT_TRUE(device_->fill(memory, std::byte{7}, 64, stream).ok());
  ASSERT_TRUE(device_->record(event, stream).ok());
  ASSERT_TRUE(device_->wait_for_event(other, event).ok());
  ASSERT_TRUE(device_->copy(result.data(), memory, 64, other).ok());
  EXPECT_FALSE(device_->is_done(event).value());
  EXPECT_FALSE(device_->is_idle(other).value());
  fake().hold_streams(false);
  EXPECT_TRUE(device_->is_done(event).value());
  ASSERT_TRUE(device_->synchronize(other).ok());
  EXPECT_TRUE(device_->is_idle(other).value());
  EXPECT_EQ(result[63], std::byte{7});
  ASSERT_TRUE(device_->free(memory).ok());
  ASSERT_TRUE(device_->destroy_event(event).ok());
  ASSERT_TRUE(device_->destroy_stream(stream).ok());
  ASSERT_TRUE(device_->destroy_stream(other).ok());
}

// What holds the default stream of one device holds no other one. A driver without that would let a thread that calls
// for two devices wait for itself.
TEST_F(DeviceOfFake, HasDefaultStreamsOfItsOwn) {
  for (StreamHandle* const stream : {static_cast<StreamHandle*>(nullptr), per_thread_stream()}) {
    std::byte* const pinned = device_->allocate_pinned(64).value();
    auto* const word = new (pinned) uint32_t(0);
    ASSERT_TRUE(device_->wait_for_word(stream, word, 1).ok());
    EXPECT_FALSE(device_->is_idle(stream).value());
    EXPECT_TRUE(peer_->is_idle(stream).value());
    *word = 1;
    EXPECT_TRUE(device_->is_idle(stream).value());
    ASSERT_TRUE(device_->free_pinned(pinned).ok());
  }
}

TEST_F(DeviceOfFake, TellsItsOwnStreamsFromOthers) {
  StreamHandle* const stream = device_->make_stream(false).value();
  EXPECT_TRUE(device_->check_stream(stream).ok());
  EXPECT_FALSE(device_->is_capturing(stream).value());
  EXPECT_EQ(peer_->check_stream(stream).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(device_->check_stream(static_cast<StreamHandle*>(fake().foreign_stream())).ok());
  EXPECT_TRUE(device_->is_capturing(static_cast<StreamHandle*>(fake().capturing_stream())).value());
  ASSERT_TRUE(device_->destroy_stream(stream).ok());
}

TEST_F(DeviceOfFake, EndsNoCaptureOfAnotherStream) {
  StreamHandle* const captured = device_->make_stream(false).value();
  StreamHandle* const stream = device_->make_stream(false).value();
  EventHandle* const event = device_->make_event(false, false).value();
  fake().capture(captured, true);
  std::byte* const memory = device_->allocate(64).value();
  std::byte* const pinned = device_->allocate_pinned(64).value();
  ASSERT_TRUE(device_->record(event, stream).ok());
  EXPECT_TRUE(device_->is_done(event).value());
  EXPECT_TRUE(device_->is_idle(stream).value());
  ASSERT_TRUE(device_->free(memory).ok());
  ASSERT_TRUE(device_->free_pinned(pinned).ok());
  fake().capture(captured, false);
  ASSERT_TRUE(device_->destroy_event(event).ok());
  for (StreamHandle* const one : {captured, stream}) ASSERT_TRUE(device_->destroy_stream(one).ok());
}

// A counter that the end of a graph raises.
void count(void* argument) {
  ++*static_cast<std::atomic<int>*>(argument);
}

TEST_F(DeviceOfFake, TellsTheEndOfAGraphAfterItsLastLaunch) {
  StreamHandle* const stream = device_->make_stream(false).value();
  std::array<std::byte, 4> bytes{};
  std::atomic<int> ends = 0;
  ASSERT_TRUE(device_->begin_capture(stream).ok());
  EXPECT_TRUE(device_->is_capturing(stream).value());
  ASSERT_TRUE(device_->fill(bytes.data(), std::byte{7}, bytes.size(), stream).ok());
  ASSERT_TRUE(device_->call_when_graph_ends(stream, &count, &ends).ok());
  GraphHandle* const graph = device_->end_capture(stream).value();
  EXPECT_TRUE(device_->is_idle(stream).value());
  EXPECT_EQ(bytes[0], std::byte{0}) << "a capture does nothing";
  fake().hold_streams(true);
  ASSERT_TRUE(device_->launch(graph, stream).ok());
  ASSERT_TRUE(device_->destroy_graph(graph).ok());
  EXPECT_EQ(ends, 0) << "a launch is under way";
  fake().hold_streams(false);
  EXPECT_TRUE(device_->is_idle(stream).value());
  EXPECT_EQ(bytes[3], std::byte{7});
  while (ends == 0) std::this_thread::yield();
  ASSERT_TRUE(device_->destroy_stream(stream).ok());
}

TEST_F(DeviceOfFake, TellsTheEndOfAGraphOnceAlsoAfterAnError) {
  StreamHandle* const stream = device_->make_stream(false).value();
  std::atomic<int> ends = 0;
  EXPECT_EQ(device_->call_when_graph_ends(stream, &count, &ends).error().code, Code::kInvalidUsage)
      << "it is not being captured";
  EXPECT_EQ(ends, 1);
  int failures = 0;
  int calls = 0;
  for (int nth = -1; nth < calls; ++nth) {  // the first time nothing fails
    ASSERT_TRUE(device_->begin_capture(stream).ok());
    const int before = fake().calls();
    fake().fail(nth, CUDA_ERROR_OUT_OF_MEMORY);
    ends = 0;
    const Status told = device_->call_when_graph_ends(stream, &count, &ends);
    if (nth < 0) calls = fake().calls() - before;
    EXPECT_EQ(ends, told.ok() ? 0 : 1) << nth;
    failures += told.ok() ? 0 : 1;
    fake().fail(-1, CUDA_SUCCESS);
    fake().capture(stream, false);
    while (ends == 0) std::this_thread::yield();
    EXPECT_EQ(ends, 1) << nth;
  }
  EXPECT_GE(failures, 3);
  ASSERT_TRUE(device_->destroy_stream(stream).ok());
}

TEST_F(DeviceOfFake, FindsTheDeviceOfAStream) {
  StreamHandle* const stream = peer_->make_stream(false).value();
  EXPECT_EQ(devices_->device_of(stream).value(), 1);
  EXPECT_EQ(devices_->device_of(static_cast<StreamHandle*>(fake().foreign_stream())).error().code,
            Code::kInvalidArgument);
  for (StreamHandle* const of_the_thread : {static_cast<StreamHandle*>(nullptr), per_thread_stream()}) {
    EXPECT_EQ(devices_->device_of(of_the_thread).error().code, Code::kInvalidUsage);
    fake().set_current(1);
    EXPECT_EQ(devices_->device_of(of_the_thread).value(), 1);
    fake().set_current(-1);
  }
  ASSERT_TRUE(peer_->destroy_stream(stream).ok());
}

TEST_F(DeviceOfFake, TimesAndSharesEvents) {
  EventHandle* const first = device_->make_event(true, false).value();
  EventHandle* const second = device_->make_event(true, false).value();
  EventHandle* const plain = device_->make_event(false, true).value();
  EXPECT_GT(device_->elapsed_ms(first, second).value(), 0.F);
  EXPECT_FALSE(device_->elapsed_ms(first, plain).ok());
  EXPECT_EQ(peer_->open_event(device_->share_event(plain).value()).value(), plain);
  EXPECT_FALSE(device_->share_event(first).ok());
  for (EventHandle* const event : {first, second, plain}) ASSERT_TRUE(device_->destroy_event(event).ok());
}

TEST_F(DeviceOfFake, WithoutWordWaitsSaysSo) {
  fake().set_word_waits(false);
  auto plain = devices_->open(0);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_FALSE(plain.value()->supports_word_waits());
}

// The write that was tried is done before its word is freed, which the fake driver looks for.
TEST_F(DeviceOfFake, WithWordWritesOnlySaysSo) {
  fake().set_word_waits(false);
  fake().set_word_writes(true);
  auto plain = devices_->open(0);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_FALSE(plain.value()->supports_word_waits());
}

TEST_F(DeviceOfFake, ThatFailedAnswersEveryCallWithIt) {
  StreamHandle* const stream = device_->make_stream(false).value();
  std::byte* const memory = device_->allocate(8).value();
  fake().break_device(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(device_->is_idle(stream).error().code, Code::kUnhandledDeviceError);
  EXPECT_FALSE(device_->synchronize(stream).ok());
  EXPECT_FALSE(device_->fill(memory, std::byte{}, 8, stream).ok());
  EXPECT_NE(device_->synchronize(stream).error().message.find("error 700"), std::string::npos)
      << "an error that the driver has no name for";
  ASSERT_TRUE(device_->free(memory).ok());
  ASSERT_TRUE(device_->destroy_stream(stream).ok());
}

// By which opening a device finds out whether it maps descriptors.
constexpr int kCallsForDescriptors = 4;

// Every function of the interface once. Each failure of the driver in it has to come out as an error that names the
// function that failed, with the context as it was before.
class EveryCall : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    leaks_ = true;
  }

  Status all() {
    const std::unique_ptr<Devices> devices = TRY(open_devices(TRESTLE_FAKE_DRIVER));
    const std::unique_ptr<Device> device = TRY(devices->open(0));
    const std::unique_ptr<Device> peer = TRY(devices->open(1));
    TRY(memory(*devices, *device, *peer));
    return streams(*device);
  }

  static Status memory(Devices& devices, Device& device, Device& peer) {
    std::byte* const memory = TRY(device.allocate(256));
    std::byte* const pinned = TRY(device.allocate_pinned(256));
    alignas(64) static std::array<std::byte, 256> host;
    TRY(device.pin(host.data(), host.size()));
    TRY(device.unpin(host.data()));
    TRY(devices.look_at(memory));
    std::byte* const opened = TRY(peer.open(TRY(device.share(memory))));
    TRY(peer.close(opened));
    if (device.maps_descriptors() && peer.maps_descriptors()) TRY(described(device, peer));
    TRY(device.can_reach(peer));
    TRY(device.reach(peer));
    TRY(device.free_pinned(pinned));
    return device.free(memory);
  }

  static Status described(Device& device, Device& peer) {
    const DescribedMemory own = TRY(device.allocate_described(kDescribedBlockBytes));
    std::byte* const mapped = TRY(peer.map_described(own.descriptor.get(), kDescribedBlockBytes));
    TRY(peer.unmap_described(mapped, kDescribedBlockBytes));
    return device.unmap_described(own.memory, kDescribedBlockBytes);
  }

  static Status streams(Device& device) {
    static std::array<std::byte, 8> bytes;
    static uint32_t word;
    StreamHandle* const stream = TRY(device.make_stream(false));
    EventHandle* const event = TRY(device.make_event(false, true));
    TRY(device.check_stream(stream));
    TRY(device.is_capturing(stream));
    TRY(device.fill(bytes.data(), std::byte{1}, 4, stream));
    TRY(device.copy(bytes.data(), bytes.data() + 4, 4, stream));
    TRY(device.record(event, stream));
    TRY(device.wait_for_event(stream, event));
    TRY(device.write_word(stream, &word, 1));
    TRY(device.wait_for_word(stream, &word, 1));
    TRY(device.call_host(
        stream, [](void*) {}, nullptr));
    TRY(device.begin_capture(stream));
    TRY(device.call_when_graph_ends(
        stream, [](void*) {}, nullptr));
    GraphHandle* const graph = TRY(device.end_capture(stream));
    TRY(device.launch(graph, stream));
    TRY(device.destroy_graph(graph));
    TRY(device.is_done(event));
    TRY(device.open_event(TRY(device.share_event(event))));
    TRY(device.is_idle(stream));
    TRY(device.destroy_event(event));
    return device.destroy_stream(stream);
  }
};

TEST_F(EveryCall, ThatFailsIsReported) {
  const Status whole = all();
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  const int calls = fake().calls();
  EXPECT_GT(calls, 50);
  int not_told = 0;  // whether devices map descriptors is asked, and an error is a no
  for (int nth = 0; nth < calls; ++nth) {
    fake().reset();
    fake().fail(nth, CUDA_ERROR_OUT_OF_MEMORY);
    const Status failed = all();
    const bool only_the_end = nth >= calls - 2;  // the contexts are given back by destructors, which tell nobody
    if (failed.ok() && !only_the_end) ++not_told;
    EXPECT_TRUE(!only_the_end || failed.ok()) << "call " << nth << " of " << calls;
    if (!failed.ok() && nth > 1) {
      EXPECT_EQ(failed.error().message.compare(0, 2, "cu"), 0) << failed.error().message;
      EXPECT_EQ(failed.error().code, Code::kSystemError) << failed.error().message;
      EXPECT_NE(failed.error().message.find("CUDA_ERROR_OUT_OF_MEMORY (in words)"), std::string::npos);
    }
    EXPECT_EQ(fake().objects().pushed, 0) << "call " << nth;
    EXPECT_EQ(fake().objects().contexts, 0) << "call " << nth;
    EXPECT_EQ(fake().misuse(), "") << "call " << nth;
  }
  EXPECT_EQ(not_told, 2 * kCallsForDescriptors);
}

// An attempt that fails leaves nothing behind, wherever it fails.
TEST_F(EveryCall, OfOpeningADeviceGivesBackWhatItTook) {
  leaks_ = false;
  const std::unique_ptr<Devices> devices = open_devices(TRESTLE_FAKE_DRIVER).value();
  const int before = fake().calls();
  { ASSERT_TRUE(devices->open(0).ok()); }
  const int calls = fake().calls() - before - 1;  // but for the destructor's
  int not_told = 0;
  for (int nth = 0; nth < calls; ++nth) {
    fake().fail(nth, CUDA_ERROR_UNKNOWN);
    const auto opened = devices->open(0);
    if (opened.ok()) {
      EXPECT_FALSE(opened.value()->maps_descriptors()) << nth;
      ++not_told;
      continue;
    }
    FakeObjects left = fake().objects();
    // A free that fails keeps its object, if the driver could not even be asked.
    EXPECT_LE(left.streams + left.pinned, 1) << nth;
    left.streams = left.pinned = 0;
    EXPECT_EQ(left, FakeObjects()) << nth;
    fake().reset();
  }
  EXPECT_EQ(not_told, kCallsForDescriptors);
}

}  // namespace
}  // namespace trestle
