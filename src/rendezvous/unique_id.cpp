#include "rendezvous/unique_id.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "control_mesh/byte_text.h"

namespace trestle {
namespace {

constexpr uint32_t kMagic = 0x5452494cu;  // "LIRT"
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumAt = sizeof(UniqueIdBytes) - 8;

std::string_view view(const void* bytes, size_t count) {
  return {static_cast<const char*>(bytes), count};
}

uint64_t checksum(const UniqueIdBytes& bytes) {
  return Hasher().bytes(std::span(bytes).first(kChecksumAt)).digest();
}

}  // namespace

bool is_zero(const UniqueIdBytes& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Result<UniqueIdBytes> encode(const UniqueId& id) {
  std::array<char, 16> ip{};
  uint8_t family = 4;
  if (inet_pton(AF_INET, id.ip.c_str(), ip.data()) != 1) {
    family = 6;
    if (inet_pton(AF_INET6, id.ip.c_str(), ip.data()) != 1)
      return Error{Code::kInvalidArgument, "'" + id.ip + "' is not a numeric address that fits into a unique id"};
  }
  ByteWriter out;
  out.integer(kMagic).integer(kVersion).integer(family).raw(std::string_view("\0\0\0", 3)).integer(id.port);
  out.integer(uint16_t{0}).raw(view(ip.data(), ip.size()));
  out.raw(view(id.job.data(), id.job.size())).raw(view(id.secret.data(), id.secret.size()));
  const std::string text = out.take();
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
  const auto family = in.integer<uint8_t>();
  in.raw(3);
  UniqueId id;
  id.port = in.integer<uint16_t>();
  in.raw(2);
  const std::string_view ip = in.raw(16);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if ((family != 4 && family != 6) || id.port == 0 ||
      inet_ntop(family == 4 ? AF_INET : AF_INET6, ip.data(), text.data(), text.size()) == nullptr)
    return Error{Code::kInvalidArgument, "the unique id holds no usable address"};
  id.ip = text.data();
  const std::string_view job = in.raw(id.job.size());
  const std::string_view secret = in.raw(id.secret.size());
  std::memcpy(id.job.data(), job.data(), job.size());
  std::memcpy(id.secret.data(), secret.data(), secret.size());
  return id;
}

}  // namespace trestle
