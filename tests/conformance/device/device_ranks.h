// The ranks of a job as engines in this process, over a transport of choice: each with buffers in host memory or on a
// pretended device of its own. One thread drives them all.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/run/engine.h"
#include "support/pretend_device.h"

namespace trestle {

using Bytes = std::vector<std::byte>;

// A call of all ranks.
struct DeviceCall {
  std::function<PrepareRequest(int32_t rank)> request;
  Schedule schedule{};     // not of messages
  bool in_place = false;   // on the ranks that have both buffers
  uint64_t inputs = 0;     // seed of the data
  int64_t timeout_ns = 0;  // 0: none
};

struct DeviceOptions {
  std::string transport = "loopback";
  MemoryPlace place = MemoryPlace::kDevice;
  uint64_t seed = 0;               // of the delays
  int64_t most_delay_ns = 20'000;  // of each piece of work
  uint64_t segment_bytes = 2048;
  // Of a phase's bounce block, on the rank.
  std::function<uint64_t(int32_t rank)> bounce_bytes = [](int32_t) { return kBounceBytes; };
  bool sleeps = false;
  // Which ranks have a peer path with each other, themselves included. Over loopback, or with outboxes over shm.
  std::function<bool(int32_t a, int32_t b)> paths = [](int32_t, int32_t) { return false; };
  // Of each rank; more than 0: the paths are those between processes.
  uint64_t outbox_bytes = 0;
  // Whether the devices of other ranks reach the buffers of the rank (PrepareRequest::open_to_devices).
  std::function<bool(int32_t rank)> open = [](int32_t) { return true; };
};

class DeviceRanks {
 public:
  DeviceRanks(const Topology& topology, const DeviceOptions& options);
  ~DeviceRanks();

  // Begins a call on all ranks; the error is that of its preparation. Its buffers live until the end.
  Status begin(const DeviceCall& call);
  // Begins the operations once more, with other data. Error: a device has no memory.
  Status repeat(uint64_t inputs);
  // Until nothing is pending. False: a rank has failed.
  bool finish();
  // Drives all ranks once. True if anything moved.
  bool drive();
  // The receive buffers of the last call by rank, as they are; poison where nothing was written.
  std::vector<Bytes> results() const;
  // The send buffers, which must not have changed.
  bool inputs_unchanged() const;

  Engine& engine(int32_t rank) { return *engines_[static_cast<size_t>(rank)]; }
  PretendDevice& device(int32_t rank) { return *devices_[static_cast<size_t>(rank)]; }
  size_t pending();
  void close();

 private:
  struct Rank {
    std::shared_ptr<const Prepared> prepared;
    std::byte* memory = nullptr;  // of both buffers
    uint64_t bytes = 0;
    uint64_t send = 0;  // where the buffers begin in it
    uint64_t sent = 0;  // bytes
    uint64_t recv = 0;
    uint64_t received = 0;
    bool in_place = false;
    DataType type = DataType::kFloat32;
  };
  std::vector<PeerPaths> make_paths();
  bool has_path(int32_t a, int32_t b) const { return options_.paths(a, b) || options_.paths(b, a); }
  DevicePlace make_place(int32_t rank);
  void set_device_paths(int32_t rank, Transport& transport);
  void lay_out(int32_t rank, const PrepareRequest& request, bool in_place);
  void fill(int32_t rank, uint64_t inputs);
  Status start(int32_t rank);
  std::byte* bytes_of(int32_t rank, uint64_t offset) const;

  const Topology topology_;
  const DeviceOptions options_;
  std::vector<std::unique_ptr<PretendDevice>> devices_;
  std::vector<Region> outboxes_;  // by rank
  std::vector<PeerPaths> paths_;
  std::vector<Rank> ranks_;
  std::vector<std::shared_ptr<Stream>> streams_;  // of each operation
  std::vector<std::unique_ptr<Bytes>> host_;      // memory of calls in host memory
  uint64_t next_number_ = 1;
  uint64_t inputs_ = 0;
  int64_t timeout_ns_ = 0;
  std::vector<std::shared_ptr<Engine>> engines_;  // declared last, because their operations point to the streams
};

// A schedule that the configuration chooses for the request.
Result<Schedule> schedule_of(const PrepareRequest& request, const Topology& topology, const std::string& algorithm,
                             uint32_t chunks);
Topology device_grid(const std::vector<int32_t>& sizes);
// Finite values of the type whose sums and products round.
void fill_elements(std::byte* data, uint64_t bytes, DataType type, uint64_t seed);

}  // namespace trestle
