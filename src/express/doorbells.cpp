#include "express/doorbells.h"

#include "transport/socket/socket.h"

namespace trestle {

namespace {

constexpr size_t kMostNameBytes = sizeof(uint64_t);

uint64_t packed(const std::string& name) {
  uint64_t word = 0;
  for (size_t i = 0; i < name.size(); ++i) word |= uint64_t{static_cast<uint8_t>(name[i])} << (8 * i);
  return word;
}

std::string unpacked(uint64_t word) {
  std::string name;
  for (; word != 0; word >>= 8) name += static_cast<char>(word & 0xff);
  return name;
}

}  // namespace

Result<Doorbells> Doorbells::open(Shared& shared, Place* places, int32_t rank, int32_t ranks) {
  Doorbells doorbells;
  DatagramSocket socket = TRY(open_datagrams());
  if (socket.name.size() > kMostNameBytes) {
    return Error{Code::kSystemError, "the system gives Unix sockets longer names than a bell's place has room for"};
  }
  doorbells.socket_ = std::move(socket.fd);
  doorbells.shared_ = &shared;
  doorbells.places_ = places;
  doorbells.rank_ = static_cast<uint32_t>(rank);
  doorbells.ranks_ = static_cast<uint32_t>(ranks);
  if (!register_for_heavy_fences()) shared.attention.fetch_or(kFences, std::memory_order_seq_cst);
  places[rank].name.store(packed(socket.name), std::memory_order_release);
  return doorbells;
}

void Doorbells::prepare_sleep(int32_t awaited) {
  if (shared_ == nullptr) return;
  places_[rank_].awaited.store(awaited == kAnything ? kAwaitsAnything : static_cast<uint32_t>(awaited) + 1,
                               std::memory_order_relaxed);
  if (!sleeps_) shared_->attention.fetch_add(1, std::memory_order_seq_cst);
  sleeps_ = true;
  heavy_fence();
}

void Doorbells::finish_sleep() {
  if (shared_ == nullptr) return;
  if (sleeps_) {
    sleeps_ = false;
    places_[rank_].awaited.store(0, std::memory_order_relaxed);
    shared_->attention.fetch_sub(1, std::memory_order_seq_cst);
  }
  // Also rings for an earlier sleep that were on their way when it ended: unread, they would end each further sleep at
  // once.
  drain_datagrams(socket_.get());
}

void Doorbells::ring(bool only_for_anything) {
  if ((shared_->attention.load(std::memory_order_relaxed) & kFences) != 0) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (shared_->attention.load(std::memory_order_relaxed) == kFences) return;
  }
  for (uint32_t r = 0; r < ranks_; ++r) {
    uint32_t awaited = places_[r].awaited.load(std::memory_order_relaxed);
    const bool rings = awaited == kAwaitsAnything || (!only_for_anything && awaited == rank_ + 1);
    // The writer that clears the word rings. The sleeper sets it again if that was not what it needs.
    if (!rings || !places_[r].awaited.compare_exchange_strong(awaited, 0, std::memory_order_acquire)) continue;
    ring_datagram(socket_.get(), unpacked(places_[r].name.load(std::memory_order_acquire)));
  }
}

}  // namespace trestle
