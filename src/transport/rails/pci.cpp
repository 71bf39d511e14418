#include "transport/rails/pci.h"

#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <sstream>

#include "base/files/kernel_file.h"

namespace trestle {
namespace {

// "0000:3b:00.0": domain, bus, device and function, hexadecimal. A domain may have more digits.
bool is_pci_address(std::string_view name) {
  static constexpr std::string_view kShape = "xxxx:xx:xx.x";
  if (name.size() < kShape.size()) return false;
  const size_t more = name.size() - kShape.size();
  for (size_t i = 0; i < name.size(); ++i) {
    const char wanted = i < more ? 'x' : kShape[i - more];
    const bool digit = std::isxdigit(static_cast<unsigned char>(name[i])) != 0;
    if (wanted == 'x' ? !digit : name[i] != wanted) return false;
  }
  return true;
}

// Where the links of a path lead; "": nowhere.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&::free)> found(::realpath(path.c_str(), nullptr), &::free);
  return found == nullptr ? "" : found.get();
}

}  // namespace

uint64_t pci_rate_bps(std::string_view speed, int64_t lanes) {
  static constexpr int64_t kMostLanes = 64;
  double gigatransfers = 0;
  const auto read = std::from_chars(speed.data(), speed.data() + speed.size(), gigatransfers);
  if (read.ec != std::errc() || !(gigatransfers > 0) || gigatransfers > 1000) return 0;
  if (lanes < 1 || lanes > kMostLanes) return 0;
  // Up to 5 GT/s 8 of 10 bits are data, from 8 GT/s 128 of 130, from 64 GT/s about all.
  const double data = gigatransfers <= 5 ? 0.8 : gigatransfers < 64 ? 128.0 / 130 : 1;
  return static_cast<uint64_t>(gigatransfers * 1e9 * data * static_cast<double>(lanes));
}

PciDevice read_pci(const std::string& device) {
  std::string place = resolved(device);
  while (!place.empty()) {
    const size_t slash = place.rfind('/');
    if (slash == std::string::npos) break;
    if (is_pci_address(std::string_view(place).substr(slash + 1))) {
      PciDevice found;
      found.address = place.substr(slash + 1);
      found.numa_node = static_cast<int>(std::max<int64_t>(-1, number_in(place + "/numa_node", -1)));
      const auto speed = first_line(place + "/current_link_speed");
      if (speed.ok()) found.rate_bps = pci_rate_bps(speed.value(), number_in(place + "/current_link_width", 0));
      return found;
    }
    place.resize(slash);
  }
  return {};
}

std::vector<std::string> pci_path(const std::string& device) {
  std::vector<std::string> addresses;
  std::istringstream place(resolved(device));
  for (std::string part; std::getline(place, part, '/');) {
    if (is_pci_address(part)) addresses.push_back(part);
  }
  return addresses;
}

}  // namespace trestle
