// Links that a topology file may name instead of their speed: NVLinks, and lanes of PCIe.
#include <algorithm>

#include "base/text/value_text.h"
#include "topology/internal.h"

namespace trestle {
namespace {

struct NamedLink {
  const char* name;
  uint64_t kbps;  // of one, one way, 10^3 bit/s
  int64_t most;   // that a device has
};

// NVLinks: 20, 25, 25, 25 and 50 GB/s, of Pascal, Volta, Ampere, Hopper and Blackwell. PCIe: without the line code, as
// in transport/rails/pci.cpp.
constexpr NamedLink kLinks[] = {
    {"nvlink1", 160'000'000, 18}, {"nvlink2", 200'000'000, 18}, {"nvlink3", 200'000'000, 18},
    {"nvlink4", 200'000'000, 18}, {"nvlink5", 400'000'000, 18}, {"pcie1", 2'000'000, 32},
    {"pcie2", 4'000'000, 32},     {"pcie3", 7'876'923, 32},     {"pcie4", 15'753'846, 32},
    {"pcie5", 31'507'692, 32},    {"pcie6", 64'000'000, 32}};

}  // namespace

Result<uint64_t> named_link_mbps(const std::string& text) {
  const size_t times = text.rfind('x');
  const auto link = std::ranges::find(kLinks, text.substr(0, times), &NamedLink::name);
  if (times == std::string::npos || link == std::end(kLinks)) {
    std::string names;
    for (const NamedLink& one : kLinks) names.append(names.empty() ? "" : ", ").append(one.name);
    return Error{Code::kInvalidArgument,
                 "must be a link and how many, such as nvlink4x18 or pcie5x16; links are " + names};
  }
  const auto count = parse_integer(text.substr(times + 1));
  if (!count.ok() || count.value() < 1 || count.value() > link->most)
    return Error{Code::kInvalidArgument,
                 std::string("must have from 1 to ") + std::to_string(link->most) + " " + link->name};
  return link->kbps * static_cast<uint64_t>(count.value()) / 1000;
}

}  // namespace trestle
