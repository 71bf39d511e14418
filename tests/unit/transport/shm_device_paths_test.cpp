// Messages in memory of a device, along a path between processes: the transport says where they lie, and never touches
// a byte of them.
#include <sys/mman.h>

#include "memory/mem_alloc.h"
#include "transport/agreement.h"
#include "unit/transport/shm_ends.h"

namespace trestle {
namespace {

// Memory of a device, and where another process has opened it. Nobody can touch the bytes of either.
class DeviceMemory {
 public:
  static constexpr size_t kBytes = 1 << 20;
  DeviceMemory() {
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
  Region place(int i) const { return {static_cast<std::byte*>(places_[i]), kBytes, {id_, 0}, 0}; }

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

// A peer that lies about a place in its outbox.
TEST_F(ShmDevicePaths, RefuseAPlaceBeyondTheOutbox) {
  const DeviceMemory outbox;
  make(2);
  const Region own = outbox.own();
  Region opened = outbox.opened();
  --opened.bytes;
  const Region none;
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
    const Region none;
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
