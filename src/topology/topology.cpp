#include "topology/topology.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/hash.h"
#include "topology/internal.h"

namespace trestle {

const char* to_string(DimensionKind kind) {
  switch (kind) {
    case DimensionKind::kRing:
      return "ring";
    case DimensionKind::kFullyConnected:
      return "fully_connected";
    case DimensionKind::kSwitch:
      return "switch";
  }
  return "invalid";
}

int32_t Topology::ranks() const {
  int32_t product = 1;
  for (const Dimension& dimension : dimensions) product *= dimension.size;
  return product;
}

int32_t Topology::coordinate(int32_t rank, uint8_t dimension) const {
  if (dimension == kFlat) return rank;
  CHECK(dimension < dimensions.size(), "a coordinate in a dimension that does not exist");
  for (uint8_t d = 0; d < dimension; ++d) rank /= dimensions[d].size;
  return rank % dimensions[dimension].size;
}

std::vector<int32_t> Topology::group(int32_t rank, uint8_t dimension) const {
  CHECK(rank >= 0 && rank < ranks(), "the group of a rank that does not exist");
  int32_t stride = 1;
  if (dimension != kFlat) {
    for (uint8_t d = 0; d < dimension; ++d) stride *= dimensions[d].size;
  }
  const int32_t first = rank - coordinate(rank, dimension) * stride;
  std::vector<int32_t> members(static_cast<size_t>(group_size(dimension)));
  for (size_t i = 0; i < members.size(); ++i) members[i] = first + static_cast<int32_t>(i) * stride;
  return members;
}

int32_t Topology::group_size(uint8_t dimension) const {
  if (dimension == kFlat) return ranks();
  CHECK(dimension < dimensions.size(), "the group size of a dimension that does not exist");
  return dimensions[dimension].size;
}

uint64_t bytes_in_a_step(const Topology& topology, uint8_t dimension) {
  static constexpr uint64_t kMbpsNsPerByte = 8000;
  uint64_t most = 0;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    if (dimension != kFlat && dimension != d) continue;
    const Dimension& one = topology.dimensions[d];
    const TransportFacts& nominal = facts_of(one.transport);
    const uint64_t latency_ns = one.latency_ns == kNominalLatency ? nominal.latency_ns : one.latency_ns;
    const unsigned __int128 product =
        static_cast<unsigned __int128>(one.bandwidth_mbps == 0 ? nominal.bandwidth_mbps : one.bandwidth_mbps) *
        latency_ns / kMbpsNsPerByte;
    most = std::max(most, static_cast<uint64_t>(std::min<unsigned __int128>(product, UINT64_MAX / 4)));
  }
  return most;
}

uint8_t Topology::outermost_difference(int32_t a, int32_t b) const {
  for (auto d = static_cast<uint8_t>(dimensions.size()); d-- > 0;) {
    if (coordinate(a, d) != coordinate(b, d)) return d;
  }
  return kFlat;
}

TransportKind Topology::transport_between(int32_t a, int32_t b) const {
  TransportKind transport = TransportKind::kAuto;
  for (const Dimension& dimension : dimensions) {
    if (a % dimension.size != b % dimension.size) transport = dimension.transport;
    a /= dimension.size;
    b /= dimension.size;
  }
  return transport;
}

uint64_t hash(const Topology& topology) {
  Hasher hasher;
  hasher.integer(topology.dimensions.size());
  for (const Dimension& dimension : topology.dimensions) {
    hasher.integer(static_cast<uint64_t>(dimension.size)).integer(static_cast<uint64_t>(dimension.kind));
    hasher.integer(dimension.bandwidth_mbps).integer(dimension.latency_ns);
    hasher.integer(static_cast<uint64_t>(dimension.transport)).string(interfaces_text(dimension));
    hasher.string(dimension.shared_resource).integer(dimension.shared_ps_per_byte);
    hasher.integer(dimension.in_network_reduction ? 1 : 0).integer(dimension.unknown_network ? 1 : 0);
  }
  return hasher.digest();
}

Result<std::vector<int32_t>> parse_dims(const std::string& text) {
  const auto invalid = [&](size_t place, const std::string& why) {
    return Error{Code::kInvalidArgument, "dimensions '" + text + "': " + why + " at character " +
                                             std::to_string(place + 1) + " (such as 4x2, innermost first)"};
  };
  std::vector<int32_t> sizes;
  int64_t ranks = 1;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();; ++at) {
    const auto place = static_cast<size_t>(at - text.data());
    int32_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error == std::errc::result_out_of_range) return invalid(place, "a size above 2147483647");
    if (error != std::errc()) return invalid(place, at == end ? "a size is missing" : "not a size");
    if (size < 1) return invalid(place, "a size below 1");
    ranks *= size;
    if (ranks > std::numeric_limits<int32_t>::max()) return invalid(place, "more than 2147483647 ranks");
    sizes.push_back(size);
    if (next == end) return sizes;
    if (*next != 'x') return invalid(static_cast<size_t>(next - text.data()), "expected 'x' between sizes");
    at = next;
  }
}

Status drop_single(Topology& topology, const std::string& what) {
  if (topology.dimensions.empty()) return Error{Code::kInvalidArgument, what + ": there are no dimensions"};
  int64_t ranks = 1;
  for (const Dimension& dimension : topology.dimensions) {
    ranks *= dimension.size;
    if (ranks > std::numeric_limits<int32_t>::max()) {
      return Error{Code::kInvalidArgument, what + ": the dimensions hold more than 2147483647 ranks"};
    }
  }
  std::vector<Dimension> kept;
  std::string dropped;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    Dimension& dimension = topology.dimensions[d];
    if (dimension.size > 1 || (ranks == 1 && d == 0)) {
      kept.push_back(std::move(dimension));
    } else if (dropped.size() < 40) {
      dropped += (dropped.empty() ? "" : ", ") + std::to_string(d + 1);
    } else if (!dropped.ends_with("...")) {
      dropped += ", ...";
    }
  }
  if (kept.size() > kMaxDimensions) {
    return Error{Code::kInvalidArgument, what + ": " + std::to_string(kept.size()) + " dimensions, at most " +
                                             std::to_string(kMaxDimensions) + " are possible"};
  }
  topology.dimensions = std::move(kept);
  if (!dropped.empty()) topology.reason += "; dropped, because of size 1: dimension " + dropped;
  return {};
}

}  // namespace trestle
