// Invented interfaces of hosts, for tests of which of them are rails.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/rails/choice.h"

namespace trestle {

// "10.0.0.1/24", "[fd00::1]/64", several with blanks between them.
inline std::vector<InterfaceAddress> addresses_of(const std::string& texts) {
  std::vector<InterfaceAddress> addresses;
  for (size_t begin = 0; begin < texts.size();) {
    const size_t end = std::min(texts.find(' ', begin), texts.size());
    const std::string text = texts.substr(begin, end - begin);
    const size_t slash = text.find('/');
    InterfaceAddress one{parse_address(text.substr(0, slash) + ":1").value(), std::stoi(text.substr(slash + 1))};
    one.address.set_port(0);
    addresses.push_back(one);
    begin = end + 1;
  }
  return addresses;
}

inline HostInterface card(const std::string& name, const std::string& addresses, uint64_t rate_bps = 0) {
  HostInterface interface;
  interface.name = name;
  interface.addresses = addresses_of(addresses);
  interface.up = interface.running = true;
  interface.facts.hardware = true;
  interface.facts.rate_bps = rate_bps;
  return interface;
}

inline HostInterface software(const std::string& name, const std::string& addresses) {
  HostInterface interface = card(name, addresses);
  interface.facts.hardware = false;
  return interface;
}

inline HostInterface loopback() {
  HostInterface lo = software("lo", "127.0.0.1/8 [::1]/128");
  lo.loopback = true;
  return lo;
}

inline HostInterface down(HostInterface interface) {
  interface.up = interface.running = false;
  return interface;
}

// "eth0 10.0.0.1 10.0.0.0/24": interface, address, fabric.
inline std::vector<std::string> rails_text(const std::vector<LocalRail>& rails) {
  std::vector<std::string> texts;
  for (const LocalRail& rail : rails)
    texts.push_back(rail.interface + " " + format_host(rail.address) + " " + rail.fabric.text());
  return texts;
}

}  // namespace trestle
