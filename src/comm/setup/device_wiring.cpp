#include "comm/setup/device_wiring.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text/byte_text.h"
#include "comm/device/find_peer_paths.h"
#include "comm/device/opened_devices.h"
#include "comm/setup/device_links.h"

namespace trestle {

namespace {

// The number of the rank's device, which means something in its own process only. Of a rank that may have paths.
constexpr const char* kDeviceAddress = "device";
// What tell_device() says of it.
constexpr const char* kGpuAddress = "gpu";
// Where ranks of other processes find its outbox (MemoryAddress).
constexpr const char* kOutboxAddress = "outbox";
// Where ranks of other processes find its memory for the board of devices (BoardAddress); it has brought some.
constexpr const char* kDeviceBoardAddress = "device board";

// Its device maps memory by descriptors: the network namespace in which it listens for them.
constexpr const char* kDescriptorsAddress = "gpu descriptors";
// Where it takes them.
constexpr const char* kPostAddress = "descriptor post";

constexpr const char* kWhyNot = "rank %d: small collectives on memory of devices go as messages: %s";

}  // namespace

Status DeviceWiring::introduce(const CommunicatorSettings& settings, RankInfo& mine) {
  const Config& config = settings.config;
  if (config.device < 0) return {};
  if (config.peer_access) mine.addresses[kDeviceAddress] = std::to_string(config.device);
  const auto device = static_cast<int>(config.device);
  mine.addresses[kGpuAddress] = TRY(tell_device(device));
  if (!config.peer_access) return {};
  const std::string network = DescriptorPassing::network_of(TRY(OpenedDevices::process().open(device))->device());
  if (!network.empty()) mine.addresses[kDescriptorsAddress] = network;
  return {};
}

Status DeviceWiring::offer(RankInfo& mine, const RankRoutes& routes) {
  routes_ = &routes;
  if (!has_peer_paths()) return {};
  listen_for_descriptors(mine);
  offer_outbox(mine);
  return bring_board(mine);
}

Status DeviceWiring::agree() {
  TRY(pass_descriptors());
  TRY(open_outboxes());
  TRY(agree_on_links());
  return make_board();
}

// ---- what the ranks have told

// What each rank has said of itself; "": nothing.
std::vector<std::string> DeviceWiring::told(const char* name) const {
  std::vector<std::string> texts;
  for (const RankInfo& info : wiring_.infos) {
    const auto found = info.addresses.find(name);
    texts.push_back(found == info.addresses.end() ? "" : found->second);
  }
  return texts;
}

// Whether its messages reach this rank as views of memory of the process, if both are in one.
bool DeviceWiring::has_views_of(const RankInfo& info) const {
  return facts_of(wiring_.routing->transport(rank_, info.rank)).views_in_process;
}

// -1: none, or in another process.
int DeviceWiring::device_in_process(const RankInfo& info) const {
  const auto said = info.addresses.find(kDeviceAddress);
  if (said == info.addresses.end() || at_.apart(rank_, info.rank) != Reach::kProcess) return -1;
  int device = -1;
  const char* const end = said->second.data() + said->second.size();
  const auto read = std::from_chars(said->second.data(), end, device);
  return read.ec == std::errc() && read.ptr == end ? device : -1;
}

// Whether this rank and another one have devices in different processes of a host, and a transport that has paths.
bool DeviceWiring::may_have_path(int32_t peer) const {
  return has_peer_paths() && wiring_.infos[static_cast<size_t>(peer)].addresses.contains(kDeviceAddress) &&
         may_have_host_path(peer);
}

// Whether the two may have outboxes in host memory: devices that may not read each other still read that.
bool DeviceWiring::may_have_host_path(int32_t peer) const {
  return device_ >= 0 && wiring_.infos[static_cast<size_t>(peer)].addresses.contains(kGpuAddress) &&
         at_.apart(rank_, peer) == Reach::kHost &&
         wiring_.transports[routes_->carrier_of[static_cast<size_t>(peer)]]->has_device_paths();
}

// ---- paths

// Both ends of a path find it: each says the number of its device, which the other one of the process knows too.
Status DeviceWiring::find_peers() {
  if (device_ < 0) return {};
  std::vector<int> devices;
  devices.reserve(wiring_.infos.size());
  for (const RankInfo& info : wiring_.infos)
    devices.push_back(has_peer_paths() && has_views_of(info) ? device_in_process(info) : -1);
  wiring_.peer_paths = TRY(find_peer_paths(device_, devices));
  return {};
}

void DeviceWiring::listen_for_descriptors(RankInfo& mine) {
  std::vector<bool> peers;
  for (int32_t r = 0; r < bootstrap_.nranks(); ++r) peers.push_back(may_have_path(r));
  passing_.emplace(rank_, told(kDescriptorsAddress), std::move(peers));
  const std::string post = passing_->open(kin_, to_hex(bootstrap_.job()));
  if (!post.empty()) mine.addresses[kPostAddress] = post;
}

Status DeviceWiring::pass_descriptors() {
  if (!passing_) return {};
  const std::vector<int> own{process_paths_ ? process_paths_->descriptor() : -1, board_ ? board_->descriptor() : -1};
  return run_watched(bootstrap_, [&](const ExchangeWatch& watch) {
    return passing_->pass(told(kPostAddress), own, wiring_.names, deadline_ns_, watch);
  });
}

void DeviceWiring::offer_outbox(RankInfo& mine) {
  std::vector<int32_t> peers;
  for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
    if (may_have_path(r)) peers.push_back(r);
  }
  process_paths_.emplace(SharedPlace::kDevice, device_, rank_, std::move(peers), to_hex(bootstrap_.job()));
  const std::string offered = process_paths_->offer(passing_->shared_by());
  if (!offered.empty()) mine.addresses[kOutboxAddress] = offered;
}

// All ranks exchange what they have opened, if any has offered something. offered, descriptors: by rank. found: of this
// rank.
Status DeviceWiring::open_offered(const std::vector<std::string>& offered, const std::vector<UniqueFd>& descriptors,
                                  std::optional<ProcessPaths>& found) {
  std::string opened;
  if (found) {
    for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
      const auto i = static_cast<size_t>(r);
      found->open(r, offered[i], descriptors[i], wiring_.names[i]);
    }
    opened = found->opened();
  }
  const std::vector<std::string> said = TRY(bootstrap_.all_gather(opened, deadline_ns_));
  if (!found) return {};
  found->agree(said);
  found->hand_over(wiring_.router, place_);
  return {};
}

Status DeviceWiring::open_outboxes() {
  const std::vector<std::string> offered = told(kOutboxAddress);
  if (std::ranges::all_of(offered, &std::string::empty)) return {};
  TRY(open_offered(offered, passing_ ? passing_->passed(Parcel::kOutbox) : std::vector<UniqueFd>(offered.size()),
                   process_paths_));
  if (!process_paths_) return {};
  std::vector<PeerPath> paths;
  for (int32_t r = 0; r < bootstrap_.nranks(); ++r)
    paths.push_back(process_paths_->leads_to(r) ? PeerPath::kOtherProcess : wiring_.peer_paths.to(r));
  wiring_.peer_paths = PeerPaths(std::move(paths));
  return {};
}

// All ranks exchange what they have found, if any has a device.
Status DeviceWiring::agree_on_links() {
  const std::vector<std::string> told = this->told(kGpuAddress);
  if (std::ranges::all_of(told, &std::string::empty)) return {};
  std::vector<std::string> hosts;
  for (const RankInfo& info : wiring_.infos) hosts.push_back(info.place.host_id);
  const auto links = links_of_rank(wiring_.topology, rank_, device_, wiring_.peer_paths, told, NvlinkPairs::process());
  const auto said = TRY(bootstrap_.all_gather(encode(links), deadline_ns_));
  wiring_.device_links.by_dimension = TRY(worst_links(said, links.size(), wiring_.names));
  wiring_.device_links.ranks_per_device = ranks_per_device(told, hosts);
  return share_with_host(told);
}

// Which paths share their messages with host memory, and which messages go through outboxes there as a whole.
Status DeviceWiring::share_with_host(const std::vector<std::string>& told) {
  const std::string& host_path = settings_.config.host_path;
  PeerPaths& paths = wiring_.peer_paths;
  if (has_peer_paths() && host_path != "off")
    divide_paths(paths, host_path == "on", rank_, device_, told, NvlinkPairs::process());
  TRY(open_host_outboxes());
  for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
    const bool leads = host_paths_ && host_paths_->leads_to(r);
    if (paths.to(r) == PeerPath::kOtherProcess && !leads) paths.divide(r, false);
    if (paths.to(r) == PeerPath::kNone && leads) paths.lead(r, PeerPath::kHostOutbox);
  }
  // A short message is sent before the receiver waits for it. That must not depend on whether there is an outbox.
  place_.host_outbox_from = std::max<uint64_t>(Outbox::kUnitBytes, settings_.config.eager_bytes) + 1;
  if (paths.divided() == 0) return {};
  place_.shares = std::make_unique<HostShares>(paths, bootstrap_.nranks(), monotonic_clock().now_ns());
  LOG(kInfo, kInit, "rank %d: long messages to %d ranks go over the path to their devices and through host memory",
      rank_, paths.divided());
  return {};
}

// Between processes both ends need outboxes in host memory.
Status DeviceWiring::open_host_outboxes() {
  const PeerPaths& paths = wiring_.peer_paths;
  const bool maps_memory = settings_.config.map_shared_memory;
  std::vector<int32_t> peers;
  for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
    const bool is_divided = paths.to(r) == PeerPath::kOtherProcess && paths.divides(r);
    const bool is_whole = paths.to(r) == PeerPath::kNone && may_have_host_path(r);
    if (maps_memory && (is_divided || is_whole)) peers.push_back(r);
  }
  std::string offer;
  if (!peers.empty()) {
    host_paths_.emplace(SharedPlace::kHost, device_, rank_, std::move(peers), to_hex(bootstrap_.job()));
    offer = host_paths_->offer(SharedBy::kTicket);
  }
  const std::vector<std::string> offered = TRY(bootstrap_.all_gather(offer, deadline_ns_));
  if (std::ranges::all_of(offered, &std::string::empty)) return {};
  return open_offered(offered, std::vector<UniqueFd>(offered.size()), host_paths_);
}

// ---- the board

// The board needs no transport between ranks of a process.
Result<std::vector<BoardRank>> DeviceWiring::board_ranks() const {
  const std::vector<std::string> told = this->told(kGpuAddress);
  std::vector<int> devices;
  devices.reserve(wiring_.infos.size());
  for (const RankInfo& info : wiring_.infos) devices.push_back(device_in_process(info));
  const PeerPaths here = TRY(find_peer_paths(device_, devices));
  std::vector<BoardRank> ranks;
  for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
    const auto i = static_cast<size_t>(r);
    const bool is_reached = gives_views(here.to(r)) || may_have_path(r);
    ranks.push_back({at_.process[i], devices[i], pci_of(told[i]), is_reached});
  }
  return ranks;
}

// The board has no algorithms. If the user names some, there is no board.
Status DeviceWiring::bring_board(RankInfo& mine) {
  const Config& config = settings_.config;
  if (!config.express || !config.algorithm.empty()) return {};
  if (at_.processes > 1 && config.device_express_processes == "off") return {};
  board_.emplace(device_, rank_, TRY(board_ranks()), to_hex(bootstrap_.job()),
                 static_cast<uint64_t>(config.device_express_bytes), config.device_express_processes == "on");
  if (!board_->is_possible(wiring_.names)) return {};
  // Memory that cannot be shared is said once.
  if (board_->crosses_processes() && !mine.addresses.contains(kOutboxAddress)) return {};
  if (auto brought = board_->bring(passing_->shared_by())) mine.addresses[kDeviceBoardAddress] = std::move(*brought);
  return {};
}

// All ranks see which of them have brought memory, so they agree.
Status DeviceWiring::make_board() {
  for (const RankInfo& info : wiring_.infos) {
    if (info.addresses.contains(kDeviceBoardAddress)) continue;
    if (wiring_.infos[static_cast<size_t>(rank_)].addresses.contains(kDeviceBoardAddress))
      LOG(kInfo, kInit, kWhyNot, rank_,
          (wiring_.names[static_cast<size_t>(info.rank)] + " has brought no memory for them").c_str());
    return {};
  }
  std::vector<bool> has_path;
  for (int32_t r = 0; r < bootstrap_.nranks(); ++r)
    has_path.push_back(wiring_.peer_paths.to(r) == PeerPath::kOtherProcess);
  const Result<BoardSetup::Opened> opened =
      board_->open(told(kDeviceBoardAddress), has_path, passing_->passed(Parcel::kBoard), wiring_.names);
  if (!opened.ok()) return bootstrap_.cause_of(opened.error());
  const uint32_t blocks = TRY(fewest_of_ranks(opened.value().blocks));
  std::string why_not = opened.value().why_not;
  if (blocks == 0) {
    board_->give_up();
  } else if (const Status made = board_->make(blocks, place_); !made.ok()) {
    why_not = made.error().message;
  }
  if (!TRY(agree_on_board(why_not, false))) return {};
  if (board_->crosses_processes() && !TRY(agree_on_board(board_->prove(place_, wiring_.names), true))) return {};
  LOG(kInfo, kInit, "rank %d: collectives of up to %lld bytes on memory of devices are one kernel of each rank", rank_,
      static_cast<long long>(settings_.config.device_express_bytes));
  return {};
}

Result<uint32_t> DeviceWiring::fewest_of_ranks(uint32_t mine) {
  for (const std::string& one : TRY(bootstrap_.all_gather(ByteWriter().integer(mine).take(), deadline_ns_)))
    mine = std::min(mine, ByteReader(one).integer<uint32_t>());
  return mine;
}

// One rank that is not served suffices for all ranks to go without. why: of this rank; "": it is served. is_fault: of
// the machine.
Result<bool> DeviceWiring::agree_on_board(const std::string& why, bool is_fault) {
  const Status own = why.empty() ? Status() : Error{Code::kUnhandledDeviceError, why};
  const Status all = bootstrap_.agree("", {}, own, deadline_ns_);
  if (all.ok()) return true;
  TRY(bootstrap_.heard());
  board_->drop(place_);
  if (is_fault && !own.ok()) {
    LOG(kWarn, kInit, kWhyNot, rank_, all.error().message.c_str());
  } else {
    LOG(kInfo, kInit, kWhyNot, rank_, all.error().message.c_str());
  }
  return false;
}

}  // namespace trestle
