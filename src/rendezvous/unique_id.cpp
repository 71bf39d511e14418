#include "rendezvous/unique_id.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "base/host.h"
#include "base/text/byte_text.h"

namespace trestle {
namespace {

constexpr uint32_t kMagic = 0x5452494cu;  // "LIRT"
constexpr uint32_t kVersion = 2;
constexpr size_t kChecksumAt = sizeof(UniqueIdBytes) - 8;

std::string_view view(const void* bytes, size_t count) {
  return {static_cast<const char*>(bytes), count};
}

uint64_t checksum(const UniqueIdBytes& bytes) {
  return Hasher().bytes(std::span(bytes).first(kChecksumAt)).digest();
}

std::string encode(const SocketAddress& address) {
  ByteWriter out;
  const bool is_v6 = address.family() == AddressFamily::kIpv6;
  out.integer(static_cast<uint8_t>(is_v6 ? 6 : 4)).integer(address.port());
  if (is_v6) return out.raw(view(&reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr, 16)).take();
  return out.raw(view(&reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr, 4)).take();
}

// Empty: it is none.
SocketAddress decode_address(ByteReader& in) {
  const auto family = in.integer<uint8_t>();
  const auto port = in.integer<uint16_t>();
  SocketAddress address;
  if ((family != 4 && family != 6) || port == 0) return address;
  const std::string_view ip = in.raw(family == 4 ? 4 : 16);
  if (!in.ok()) return address;
  address.storage.ss_family = family == 4 ? AF_INET : AF_INET6;
  address.length = family == 4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (family == 4)
    std::memcpy(&reinterpret_cast<sockaddr_in&>(address.storage).sin_addr, ip.data(), 4);
  else
    std::memcpy(&reinterpret_cast<sockaddr_in6&>(address.storage).sin6_addr, ip.data(), 16);
  address.set_port(port);
  return address;
}

}  // namespace

bool is_zero(const UniqueIdBytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

uint64_t own_network() {
  const std::string network = network_identity();
  return network.empty() ? 0 : Hasher().string(network).digest();
}

std::string addresses_text(const UniqueId& id) {
  std::string text;
  for (const SocketAddress& address : id.addresses) text += (text.empty() ? "" : ", ") + format_address(address);
  return text;
}

Result<UniqueIdBytes> encode(const UniqueId& id) {
  ByteWriter out;
  out.integer(kMagic).integer(kVersion).raw(view(id.job.data(), id.job.size()));
  out.raw(view(id.secret.data(), id.secret.size())).integer(id.network);
  const std::string fixed = out.take();
  std::string places;
  uint8_t count = 0;
  for (const SocketAddress& address : id.addresses) {
    const std::string place = encode(address);
    if (fixed.size() + 1 + places.size() + place.size() > kChecksumAt) break;
    places += place;
    ++count;
  }
  if (count == 0) return Error{Code::kInvalidArgument, "a unique id needs an address"};
  const std::string text = fixed + static_cast<char>(count) + places;
  UniqueIdBytes bytes{};
  std::memcpy(bytes.data(), text.data(), text.size());
  const std::string sum = ByteWriter().integer(checksum(bytes)).take();
  std::memcpy(bytes.data() + kChecksumAt, sum.data(), sum.size());
  return bytes;
}

Result<UniqueId> decode(const UniqueIdBytes& bytes) {
  ByteReader in(view(bytes.data(), bytes.size()));
  if (in.integer<uint32_t>() != kMagic)
    return Error{Code::kInvalidArgument, "the unique id was not made by trestleGetUniqueId"};
  const auto version = in.integer<uint32_t>();
  if (version != kVersion)
    return Error{Code::kInvalidArgument, "the unique id has version " + std::to_string(version) +
                                             ", this library knows version " + std::to_string(kVersion)};
  ByteReader tail(view(bytes.data() + kChecksumAt, 8));
  if (tail.integer<uint64_t>() != checksum(bytes))
    return Error{Code::kInvalidArgument, "the unique id is damaged: its checksum is wrong (were all 128 bytes sent?)"};
  UniqueId id;
  const std::string_view job = in.raw(id.job.size());
  const std::string_view secret = in.raw(id.secret.size());
  std::memcpy(id.job.data(), job.data(), job.size());
  std::memcpy(id.secret.data(), secret.data(), secret.size());
  id.network = in.integer<uint64_t>();
  const Error unusable{Code::kInvalidArgument, "the unique id holds no usable address"};
  for (auto left = in.integer<uint8_t>(); left > 0; --left) {
    id.addresses.push_back(decode_address(in));
    if (id.addresses.back().length == 0) return unusable;
  }
  if (id.addresses.empty()) return unusable;
  return id;
}

}  // namespace trestle
