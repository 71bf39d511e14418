// All bytes that bootstrap decodes from outside: unique ids, descriptions of ranks, requests and answers of the
// rendezvous, where a neighbour listens, and what it says when it makes a connection anew. Decoded values must stay the
// same after encoding and decoding again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "control_mesh/dissemination.h"
#include "control_mesh/move_record.h"
#include "rendezvous/host_rails.h"
#include "rendezvous/message.h"
#include "rendezvous/rank_info.h"
#include "rendezvous/unique_id.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void unique_id(const std::string& bytes) {
  trestle::UniqueIdBytes id{};
  std::memcpy(id.data(), bytes.data(), std::min(bytes.size(), id.size()));
  const auto decoded = trestle::decode(id);
  if (!decoded.ok()) return;
  const auto again = trestle::encode(decoded.value());
  require(again.ok() && trestle::decode(again.value()).value() == decoded.value());
}

void messages(const std::string& bytes) {
  const auto info = trestle::decode_rank_info(bytes);
  if (info.ok()) require(trestle::decode_rank_info(trestle::encode(info.value())).ok());
  const auto request = trestle::decode_join_request(bytes);
  if (request.ok()) require(trestle::encode(request.value()) == bytes);
  const auto answer = trestle::decode_join_answer(bytes);
  if (answer.ok()) require(trestle::encode(answer.value()) == bytes);
  const auto report = trestle::decode_join_report(bytes);
  if (report.ok()) require(trestle::encode(report.value()) == bytes);
}

void neighbours(const std::string& bytes) {
  const auto places = trestle::parse_meeting_text(bytes);
  if (places.ok()) {
    require(!places.value().addresses.empty() && places.value().rails.size() <= trestle::kMostRails);
    for (const trestle::PublishedRail& rail : places.value().rails) {
      require(rail.fabric.is_known());
      require(std::find(places.value().addresses.begin(), places.value().addresses.end(), rail.address) !=
              places.value().addresses.end());
    }
  }
  const auto record = trestle::decode_move_record(bytes);
  if (record) require(trestle::encode(*record) == bytes);
}

void gather(const std::string& bytes) {
  if (bytes.empty()) return;
  trestle::Dissemination one(0, 2 + static_cast<int32_t>(static_cast<uint8_t>(bytes[0]) % 8));
  one.start("mine");
  one.receive(0, bytes.substr(1));
  bool sane = true;
  (void)one.advance(sane);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  unique_id(bytes);
  messages(bytes);
  neighbours(bytes);
  gather(bytes);
  return 0;
}
