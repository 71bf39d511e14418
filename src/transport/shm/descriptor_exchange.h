// DescriptorExchange: how ranks of a host give each other descriptors while a communicator is made: of the board, of
// memory of their devices. Over the sockets that the rank has (host_sockets.h), so both ends have proved that they
// belong to the job.
//
// Opened by all ranks before one of them runs it. Used by one thread; only run() blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/shm/host_channel.h"

namespace trestle {

// Tells whether it is still worth waiting for the other ranks. `look` is called when `fd` is readable and now and then;
// its error ends the wait. `awaits` gets the rank that is waited for. All may be empty.
struct ExchangeWatch {
  int fd = -1;
  std::function<Status()> look;
  std::function<void(int32_t rank)> awaits;
};

// What a rank gives and gets: by rank of the communicator.
struct DescriptorParcels {
  std::vector<int> own;    // the caller's descriptors; -1: none. All ranks that give have as many
  std::vector<bool> to;    // these get `own`
  std::vector<bool> from;  // these give theirs
};

class DescriptorExchange final : private HostChannelEvents {
 public:
  // name: on all ranks the same, and of no other channel. what: for sentences, "the board of small collectives".
  static Result<std::unique_ptr<DescriptorExchange>> open(const HostKin& kin, const std::string& name, int32_t rank,
                                                          std::string what);

  // The other ranks pass it to run().
  const std::string& address() const { return channel_->address(); }
  // By rank, what its partners have given: as many as it said, where it has none without a descriptor. Blocks until all
  // have given and got, at most until `deadline_ns` of the monotonic clock: kTimeout names a rank that is missing.
  // kRemoteError: a rank died, left or is a stranger. addresses, names: by rank.
  Result<std::vector<std::vector<UniqueFd>>> run(const DescriptorParcels& parcels,
                                                 const std::vector<std::string>& addresses,
                                                 const std::vector<std::string>& names, int64_t deadline_ns,
                                                 const ExchangeWatch& watch = {});

 private:
  explicit DescriptorExchange(std::string what) : what_(std::move(what)) {}
  Status on_ready(int32_t) override { return {}; }
  Status on_frame(int32_t peer, const HostFrame& frame, UniqueFd fd) override;
  Status begin(const DescriptorParcels& parcels);
  Status give(const DescriptorParcels& parcels);
  // -1: nobody.
  int32_t first_missing(const DescriptorParcels& parcels) const;
  bool has_more_to_give(const DescriptorParcels& parcels) const;
  Status wait_for(int32_t rank, bool soon, int64_t deadline_ns, const ExchangeWatch& watch) const;

  const std::string what_;
  std::unique_ptr<HostChannel> channel_;
  std::vector<size_t> given_;
  std::vector<std::vector<UniqueFd>> got_;
};

}  // namespace trestle
