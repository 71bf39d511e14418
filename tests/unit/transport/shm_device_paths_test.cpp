// Messages in memory of a device, along a path between processes: the transport says where they lie, and never touches
// a byte of them.
#include <sys/mman.h>

#include <utility>

#include "base/clock.h"
#include "memory/mem_alloc.h"
#include "memory/outbox.h"
#include "transport/agreement.h"
#include "unit/transport/shm_ends.h"

namespace trestle {
namespace {

// Memory of a device, or host memory for devices, and where another process has opened it. Nobody can touch the bytes
// of either.
class DeviceMemory {
 public:
  static constexpr size_t kBytes = 1 << 20;
  explicit DeviceMemory(int32_t device = 0) : device_(device) {
    for (void*& place : places_) place = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    for (void* const place : places_) ::munmap(place, kBytes);
  }
  Region own() const { return place(0); }
  Region opened() const { return place(1); }

 private:
  Region place(int i) const { return {static_cast<std::byte*>(places_[i]), kBytes, {id_, 0}, device_}; }

  const int32_t device_;
  void* places_[2] = {};
  const uint64_t id_ = mem_new_id();
};

class ShmDevicePaths : public ShmTransportTest {
 protected:
  void expect_refused(const std::string& why) {
    std::string said;
    while (said.empty()) {
      ASSERT_TRUE(ends_[0]->progress().ok());
      const Result<bool> moved = ends_[1]->progress();
      if (!moved.ok()) said = moved.error().message;
    }
    EXPECT_NE(said.find(why), std::string::npos) << said;
  }
};

// Whether it has a destination or not, a receive gets a view of what the receiver's process has opened.
TEST_F(ShmDevicePaths, TellWhereAMessageLiesInADevice) {
  const DeviceMemory outboxes[2];
  const Region own[2] = {outboxes[0].own(), outboxes[1].own()};
  const Region opened[2] = {outboxes[0].opened(), outboxes[1].opened()};
  for (const bool map_memory : {true, false}) {
    check_ = message_check(DataPlace::kDevice);
    ends_.clear();
    make(2, map_memory);
    for (int r = 0; r < 2; ++r) {
      ASSERT_TRUE(ends_[r]->has_device_paths());
      ends_[r]->set_device_path(1 - r, {own[r].share.id, &opened[1 - r]});
    }
    uint64_t number = 0;
    for (const int32_t from : {0, 1}) {
      for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{100'000}, DeviceMemory::kBytes}) {
        for (const bool view : {false, true}) {
          const size_t offset = DeviceMemory::kBytes - bytes;
          Message& out = messages_.emplace_back();
          out.piece = {own[from].base + offset, bytes, &own[from]};
          send(out, from, 1 - from, ++number);
          EXPECT_TRUE(out.send.mapped);
          Message& in = receive(1 - from, from, number, bytes, view);
          until([&] { return done(in); });
          ASSERT_EQ(in.recv.view.size(), 1u);
          EXPECT_EQ(in.recv.view[0].data, opened[from].base + offset);
          EXPECT_EQ(in.recv.view[0].region, &opened[from]);
          EXPECT_EQ(in.recv.view[0].bytes, bytes);
          for (int i = 0; i < 100; ++i) drive();
          EXPECT_FALSE(sent(out));
          ends_[1 - from]->release(in.recv);
          until([&] { return sent(out); });
        }
      }
    }
    // A message of host memory to a destination is written there.
    check_ = message_check(DataPlace::kHost);
    send_new(0, 1, ++number, 5000);
    Message& in = receive(1, 0, number, 5000, false);
    until([&] { return done(in); });
    EXPECT_TRUE(in.recv.view.empty());
    expect_right(in, number);
  }
}

// A message whose end lies in host memory, on a path whose outboxes are in both places.
class ShmTwoOutboxes : public ShmDevicePaths {
 protected:
  static constexpr uint64_t kUnit = Outbox::kUnitBytes;

  void SetUp() override {
    make(2);
    for (int r = 0; r < 2; ++r) {
      ends_[r]->set_device_path(1 - r, {own_[r].share.id, &opened_[1 - r]});
      ends_[r]->set_device_path(1 - r, {own_host_[r].share.id, &opened_host_[1 - r]});
    }
  }
  // Of `first` bytes from unit 3 on, and `second` from unit 5 of host memory on.
  Message& send_divided(int32_t from, uint64_t number, size_t first, size_t second) {
    Message& out = messages_.emplace_back();
    pieces_[0] = {own_[from].base + 3 * kUnit, first, &own_[from]};
    pieces_[1] = {own_host_[from].base + 5 * kUnit, second, &own_host_[from]};
    out.send.peer = 1 - from;
    out.send.tag = {number, 0, 0, 0, check_};
    out.send.pieces = pieces_;
    out.send.bytes = first + second;
    while (!post(out, from)) drive();
    return out;
  }
  bool post(Message& out, int32_t from) {
    const Result<bool> posted = ends_[from]->post_send(out.send);
    EXPECT_TRUE(posted.ok()) << posted.error().message;
    return !posted.ok() || posted.value();
  }

  const DeviceMemory memory_[2] = {DeviceMemory(0), DeviceMemory(0)};
  const DeviceMemory host_[2] = {DeviceMemory(kHostMemory), DeviceMemory(kHostMemory)};
  const Region own_[2] = {memory_[0].own(), memory_[1].own()};
  const Region own_host_[2] = {host_[0].own(), host_[1].own()};
  Region opened_[2] = {memory_[0].opened(), memory_[1].opened()};
  Region opened_host_[2] = {host_[0].opened(), host_[1].opened()};
  ConstPiece pieces_[2];
};

TEST_F(ShmTwoOutboxes, TellWhereBothPartsLieAndWhenTheyWereRead) {
  check_ = message_check(DataPlace::kDevice);
  uint64_t number = 0;
  for (const int32_t from : {0, 1}) {
    for (const bool view : {false, true}) {
      Message& out = send_divided(from, ++number, 100'000, 2 * kUnit);
      EXPECT_TRUE(out.send.mapped);
      Message& in = receive(1 - from, from, number, out.send.bytes, view);
      until([&] { return done(in); });
      ASSERT_EQ(in.recv.view.size(), 2u);
      EXPECT_EQ(in.recv.view[0].data, opened_[from].base + 3 * kUnit);
      EXPECT_EQ(in.recv.view[0].bytes, 100'000u);
      EXPECT_EQ(in.recv.view[0].region, &opened_[from]);
      EXPECT_EQ(in.recv.view[1].data, opened_host_[from].base + 5 * kUnit);
      EXPECT_EQ(in.recv.view[1].bytes, 2 * kUnit);
      EXPECT_EQ(in.recv.view[1].region, &opened_host_[from]);
      const int64_t now_ns = monotonic_clock().now_ns();
      in.recv.read = {now_ns - 5'000'000, view ? now_ns - 3'000'000 : 0};
      ends_[1 - from]->release(in.recv);
      until([&] { return sent(out); });
      // The ages are rounded to no more than the time in which the answer travelled.
      EXPECT_GE(out.send.read.device_ns, now_ns - 5'000'000);
      EXPECT_LE(out.send.read.device_ns, monotonic_clock().now_ns() - 5'000'000);
      EXPECT_EQ(out.send.read.host_ns == 0, !view);
      if (view) {
        EXPECT_EQ(out.send.read.host_ns - out.send.read.device_ns, 2'000'000);
      }
    }
  }
}

TEST_F(ShmTwoOutboxes, RefuseAPlaceBeyondEitherOutbox) {
  for (Region* const region : {&opened_[0], &opened_host_[0]}) {
    const uint64_t whole = std::exchange(region->bytes, 4 * kUnit);
    ends_.clear();
    SetUp();
    check_ = message_check(DataPlace::kDevice);
    send_divided(0, 1, 2 * kUnit, 2 * kUnit);
    expect_refused("rank 0 named memory that it did not share");
    region->bytes = whole;
  }
}

// A peer that lies about a place in its outbox.
TEST_F(ShmDevicePaths, RefuseAPlaceBeyondTheOutbox) {
  const DeviceMemory outbox;
  make(2);
  const Region own = outbox.own();
  Region opened = outbox.opened();
  --opened.bytes;
  const Region none = {nullptr, 0, {}, 0};
  ends_[0]->set_device_path(1, {own.share.id, &none});
  ends_[1]->set_device_path(0, {0, &opened});
  Message& out = messages_.emplace_back();
  out.piece = {own.base, own.bytes, &own};
  send(out, 0, 1, 1);
  expect_refused("rank 0 named memory that it did not share");
}

// A receive of host memory must not end without its data, whatever the sender says of its own.
TEST_F(ShmDevicePaths, RefuseDataOfADeviceForHostMemory) {
  for (const DataPlace said : {DataPlace::kDevice, DataPlace::kHost}) {
    const DeviceMemory outbox;
    ends_.clear();
    make(2);
    const Region own = outbox.own();
    const Region opened = outbox.opened();
    const Region none = {nullptr, 0, {}, 0};
    ends_[0]->set_device_path(1, {own.share.id, &none});
    ends_[1]->set_device_path(0, {0, &opened});
    Message& out = messages_.emplace_back();
    out.piece = {own.base, own.bytes, &own};
    check_ = message_check(said);
    send(out, 0, 1, kPointToPoint | 1);
    check_ = message_check(DataPlace::kHost);
    receive(1, 0, kPointToPoint | 1, own.bytes, false);
    expect_refused(said == DataPlace::kDevice
                       ? "sends data in device memory to this rank, which expects data in host memory"
                       : "sent memory of a device where data lies in host memory");
  }
}

}  // namespace
}  // namespace trestle
