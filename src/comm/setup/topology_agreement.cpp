#include "comm/setup/topology_agreement.h"

#include <algorithm>

#include "base/text/byte_text.h"
#include "comm/setup/wiring.h"

namespace trestle {
namespace {

constexpr size_t kMostJsonBytes = size_t{64} << 10;
constexpr size_t kMostNameBytes = 64;

std::vector<DimensionRail> read_rails(ByteReader& in, bool& sane) {
  std::vector<DimensionRail> rails;
  for (uint32_t left = in.count(12); left > 0 && in.ok(); --left) {
    DimensionRail& rail = rails.emplace_back();
    rail.interface = in.text(kMostNameBytes);
    rail.bandwidth_mbps = in.integer<uint64_t>();
    sane = sane && rail.bandwidth_mbps <= kMostMbps;
  }
  sane = sane && rails.size() <= kMaxRailsOfDimension;
  return rails;
}

Result<std::vector<TopologyOffer>> exchange(Bootstrap& bootstrap, const TopologyOffer& mine, const RankNames& names,
                                            int64_t deadline_ns) {
  const auto blobs = TRY(bootstrap.all_gather(encode(mine), deadline_ns));
  std::vector<TopologyOffer> offers;
  for (size_t r = 0; r < blobs.size(); ++r) {
    auto offer = decode_topology_offer(blobs[r]);
    if (!offer.ok()) return Error{offer.error().code, names[r] + ": " + offer.error().message};
    offers.push_back(std::move(offer).value());
  }
  return offers;
}

Status compare(const std::vector<TopologyOffer>& offers, const RankNames& names) {
  std::vector<Said> said;
  for (const TopologyOffer& offer : offers) said.push_back({{}, {{"the topology", offer.topology}}});
  return compare_said("", said, names);
}

// Uses what rank 0 has found, unless the rails cannot be so fast; all ranks decide alike. `kept`: the file of it, at
// rank 0.
Result<bool> apply_calibration(const std::string& json, const std::vector<RankPlace>& places,
                               const std::vector<RankRails>& known, std::optional<UsedCalibration> kept,
                               Wiring& wiring) {
  if (json.empty()) return false;
  const Topology measured = TRY(parse_topology(json, "rank 0's calibration"));
  Topology rated = wiring.topology;
  use_known_rates(places, known, rated);
  const std::string wrong = faster_than_rails(measured, wiring.topology, rated);
  if (!wrong.empty()) {
    if (kept) warn_of(*kept, wrong);
    return false;
  }
  fill_nominal(wiring.topology, measured);
  wiring.topology.reason += "; link speeds as measured";
  wiring.used = std::move(kept);
  return true;
}

}  // namespace

std::string encode(const TopologyOffer& offer) {
  ByteWriter out;
  out.text(offer.topology).text(offer.calibration).integer(static_cast<uint32_t>(offer.rails.size()));
  for (const std::vector<DimensionRail>& dimension : offer.rails) {
    out.integer(static_cast<uint32_t>(dimension.size()));
    for (const DimensionRail& rail : dimension) out.text(rail.interface).integer(rail.bandwidth_mbps);
  }
  return out.take();
}

Result<TopologyOffer> decode_topology_offer(const std::string& bytes) {
  ByteReader in(bytes);
  TopologyOffer offer;
  bool sane = true;
  offer.topology = in.text(kMostJsonBytes);
  offer.calibration = in.text(kMostJsonBytes);
  for (uint32_t left = in.count(4); left > 0 && in.ok(); --left) offer.rails.push_back(read_rails(in, sane));
  if (sane && in.at_end()) return offer;
  return Error{Code::kRemoteError,
               "the topology that it sent cannot be read (" + std::to_string(bytes.size()) + " bytes)"};
}

Status agree_on_topology(Bootstrap& bootstrap, const CommunicatorSettings& settings, RankRails rails, Wiring& wiring,
                         int64_t deadline_ns) {
  wiring.calibration = calibration_place(settings, wiring.topology, wiring.infos);
  TopologyOffer mine{to_json(wiring.topology), "", std::move(rails)};
  std::optional<UsedCalibration> kept;
  if (bootstrap.rank() == 0) kept = kept_calibration(wiring.calibration, wiring.topology);
  if (kept) mine.calibration = to_json(kept->measured);
  std::vector<TopologyOffer> offers = TRY(exchange(bootstrap, mine, wiring.names, deadline_ns));
  TRY(compare(offers, wiring.names));
  std::vector<RankPlace> places;
  for (const RankInfo& info : wiring.infos) places.push_back(info.place);
  std::vector<RankRails> known;
  for (TopologyOffer& offer : offers) known.push_back(std::move(offer.rails));
  const bool applied = TRY(apply_calibration(offers[0].calibration, places, known, std::move(kept), wiring));
  wiring.measure = wiring.calibration.wanted && !applied && settings.config.calibrate == "full";
  if (wiring.measure) return {};
  // In this order: data over a rail whose rate is known costs processors all the same.
  share_processors(places, wiring.topology);
  use_known_rates(places, known, wiring.topology);
  return {};
}

}  // namespace trestle
