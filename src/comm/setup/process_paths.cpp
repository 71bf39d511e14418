#include "comm/setup/process_paths.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "base/text/byte_text.h"
#include "comm/device/opened_devices.h"

namespace trestle {

namespace {

// What a rank writes into its outbox before others read it: other words in every communicator.
std::unique_ptr<ProbeWords> words_of(const std::string& job, int32_t rank) {
  Hasher hasher;
  return probe_words(hasher.string(job).integer(static_cast<uint64_t>(rank)).digest());
}

const char* memory_of(SharedPlace place) {
  return place == SharedPlace::kDevice ? "memory" : "host memory";
}

// Whether the rank is among those that a peer has opened.
bool has(const std::string& opened, int32_t rank) {
  ByteReader reader(opened);
  for (uint32_t left = reader.count(sizeof rank); left != 0; --left) {
    if (reader.integer<int32_t>() == rank) return true;
  }
  return false;
}

}  // namespace

ProcessPaths::ProcessPaths(SharedPlace place, int device, int32_t rank, std::vector<int32_t> peers, std::string job)
    : place_(place), device_(device), rank_(rank), peers_(std::move(peers)), job_(std::move(job)) {}

Status ProcessPaths::try_offer(SharedBy by) {
  OutboxStore& store = TRY(OpenedDevices::process().open(device_))->outboxes(place_);
  OutboxStore::Lent lent = TRY(store.lend(by));
  Outbox& outbox = *lent.outbox;
  std::byte* const probe = outbox.take(PeerProbe::kBytes);
  if (probe == nullptr) return Error{Code::kSystemError, "an outbox has no room"};
  if (!TRY(OpenedDevices::process().write_words(device_, probe, *words_of(job_, rank_))))
    return Error{Code::kUnhandledDeviceError, "the device is busy"};
  lent.address.probe = static_cast<uint64_t>(probe - outbox.region().base);
  offered_ = encode(lent.address);
  probe_ = probe;
  descriptor_ = lent.descriptor;
  own_ = std::move(lent.outbox);
  return {};
}

std::string ProcessPaths::offer(SharedBy by) {
  if (peers_.empty()) return {};
  const Status offered = try_offer(by);
  if (offered.ok()) return offered_;
  LOG(kInfo, kInit, "rank %d: ranks of other processes cannot read %s of device %d: %s", rank_, memory_of(place_),
      device_, offered.error().message.c_str());
  return {};
}

// "": opened, and the device reads it. Memory that a device may still read stays open to the end of the process.
Result<std::string> ProcessPaths::try_open(int32_t peer, const std::string& offered, const UniqueFd& descriptor) {
  const MemoryAddress address = TRY(decode_memory_address(offered));
  if (address.bytes < PeerProbe::kBytes || address.probe > address.bytes - PeerProbe::kBytes)
    return Error{Code::kRemoteError, "its memory is too short"};
  OpenedDevice* const reader = TRY(OpenedDevices::process().open(device_));
  std::shared_ptr<const OpenedMemory> outbox = TRY(reader->use()->open(place_, address, descriptor));
  reader->keep(outbox);
  std::string untrue =
      TRY(OpenedDevices::process().read_words(device_, outbox->region().base + address.probe, *words_of(job_, peer)));
  if (!untrue.empty()) return untrue;
  reader->let_go(outbox);
  opened_[peer] = std::move(outbox);
  return untrue;
}

void ProcessPaths::open(int32_t peer, const std::string& offered, const UniqueFd& descriptor, const std::string& name) {
  if (offered.empty() || std::ranges::find(peers_, peer) == peers_.end()) return;
  constexpr const char* kText = "rank %d: device %d does not read %s of %s where it lies: %s; messages between them %s";
  const char* const then = place_ == SharedPlace::kDevice ? "go through host memory" : "do without it";
  const Result<std::string> untrue = try_open(peer, offered, descriptor);
  if (!untrue.ok()) {
    LOG(kInfo, kInit, kText, rank_, device_, memory_of(place_), name.c_str(), untrue.error().message.c_str(), then);
  } else if (!untrue.value().empty()) {
    LOG(kWarn, kInit, kText, rank_, device_, memory_of(place_), name.c_str(), untrue.value().c_str(), then);
  }
}

std::string ProcessPaths::opened() const {
  ByteWriter writer;
  writer.integer(static_cast<uint32_t>(opened_.size()));
  for (const auto& [peer, outbox] : opened_) writer.integer(peer);
  return writer.take();
}

// The peers have read by now, or given up.
void ProcessPaths::agree(const std::vector<std::string>& said) {
  if (probe_ != nullptr) own_->give_back(std::exchange(probe_, nullptr));
  std::erase_if(opened_, [&](const auto& entry) { return !has(said[static_cast<size_t>(entry.first)], rank_); });
  if (opened_.empty()) return;
  LOG(kInfo, kInit, "rank %d: device %d and those of %zu ranks of other processes read each other's %s where it lies",
      rank_, device_, opened_.size(), memory_of(place_));
}

void ProcessPaths::hand_over(const std::vector<Transport*>& router, DevicePlace& place) {
  if (opened_.empty()) return;
  for (const auto& [peer, outbox] : opened_) {
    router[static_cast<size_t>(peer)]->set_device_path(peer, {own_->region().share.id, &outbox->region()});
    place.held.push_back(outbox);
  }
  (place_ == SharedPlace::kDevice ? place.outbox : place.host_outbox) = own_;
}

}  // namespace trestle
