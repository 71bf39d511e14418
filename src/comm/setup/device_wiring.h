// DeviceWiring: how the devices of a communicator's ranks reach each other: paths for messages (memory/peer_paths.h),
// the costs of their links, paths through host memory beside them, and the board of devices. A part of wire(); in steps
// between which the ranks exchange what they have.
//
// Used by the creating thread. A rank without a device takes part in the exchanges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/setup/board_setup.h"
#include "comm/setup/descriptor_passing.h"
#include "comm/setup/process_paths.h"
#include "comm/setup/wiring.h"
#include "topology/whereabouts.h"

namespace trestle {

class DeviceWiring {
 public:
  // Adds what a rank says of its device in the first exchange. Errors: the driver's.
  static Status introduce(const CommunicatorSettings& settings, RankInfo& mine);

  // wiring: with what the first exchange brought, and its routing. place: of this rank's device; gets outboxes, shares
  // and the board. All outlive this.
  DeviceWiring(Bootstrap& bootstrap, const CommunicatorSettings& settings, const Whereabouts& at, Wiring& wiring,
               const HostKin& kin, DevicePlace& place, int64_t deadline_ns)
      : bootstrap_(bootstrap),
        settings_(settings),
        at_(at),
        wiring_(wiring),
        kin_(kin),
        place_(place),
        deadline_ns_(deadline_ns),
        rank_(bootstrap.rank()),
        device_(static_cast<int>(settings.config.device)) {}
  DeviceWiring(const DeviceWiring&) = delete;
  DeviceWiring& operator=(const DeviceWiring&) = delete;

  // Finds the paths within the process.
  Status find_peers();
  // Adds what other processes need for paths to this rank, in the second exchange. The transports have been made.
  // routes: to them.
  Status offer(RankInfo& mine, const RankRoutes& routes);
  // All that is left, once the transports are connected. Several exchanges, of all ranks.
  Status agree();

 private:
  bool has_peer_paths() const { return settings_.config.device >= 0 && settings_.config.peer_access; }
  bool has_views_of(const RankInfo& info) const;
  int device_in_process(const RankInfo& info) const;
  bool may_have_path(int32_t peer) const;
  bool may_have_host_path(int32_t peer) const;
  std::vector<std::string> told(const char* name) const;

  void listen_for_descriptors(RankInfo& mine);
  Status pass_descriptors();
  void offer_outbox(RankInfo& mine);
  Status open_offered(const std::vector<std::string>& offered, const std::vector<UniqueFd>& descriptors,
                      std::optional<ProcessPaths>& found);
  Status open_outboxes();
  Status agree_on_links();
  Status share_with_host(const std::vector<std::string>& told);
  Status open_host_outboxes();

  Result<std::vector<BoardRank>> board_ranks() const;
  Status bring_board(RankInfo& mine);
  Status make_board();
  Result<uint32_t> fewest_of_ranks(uint32_t mine);
  Result<bool> agree_on_board(const std::string& why, bool is_fault);

  Bootstrap& bootstrap_;
  const CommunicatorSettings& settings_;
  const Whereabouts& at_;
  Wiring& wiring_;
  const HostKin& kin_;
  DevicePlace& place_;
  const int64_t deadline_ns_;
  const int32_t rank_;
  const int device_;  // -1: none
  const RankRoutes* routes_ = nullptr;
  std::optional<DescriptorPassing> passing_;   // of a rank that may have paths
  std::optional<ProcessPaths> process_paths_;  // of a rank that may have some
  std::optional<ProcessPaths> host_paths_;     // of a rank whose messages may be divided
  std::optional<BoardSetup> board_;            // of a rank that may have a board
};

}  // namespace trestle
