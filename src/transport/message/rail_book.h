// RailBook: what every rail to every peer has carried, and when its state changed, for any thread that asks. See
// transport/rail_report.h.
//
// Owned by a RailTransport, or by the paths between devices (engine/work/host_shares.h). One thread at a time writes:
// the one that holds the rank's progress lock, or has lent it to close the transport. So counting is a plain addition
// to a number that readers may look at. The locks here guard what changes rarely: the list of records, and each
// record's history. No thread waits while it holds one.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/counter.h"
#include "base/mutex.h"
#include "transport/rail_report.h"

namespace trestle {

class RailRecord {
 public:
  // Begins as kConnecting. rails: that the two ranks have in common.
  RailRecord(int32_t peer, std::string name, uint32_t rails, int64_t now_ns);

  // ---- by the writer
  void sent(uint64_t bytes) { sent_.add(bytes); }
  void acknowledged(uint64_t bytes) { acknowledged_.add(bytes); }
  void received(uint64_t bytes) { received_.add(bytes); }
  void sent_again() { sent_again_.add(1); }
  void load(uint64_t queued_bytes, double bytes_per_second);
  void connected(int64_t now_ns);
  // The connection has ended without a goodbye, and the two ranks have to agree on what has come (kEnding), or need not
  // (kDown). Without a connection: none could be made.
  void lost(RailState now, const std::string& why, int64_t now_ns);
  // It carries nothing any more. Further attempts that fail only change `why`; "" leaves it.
  void down(const std::string& why, int64_t now_ns);

  // ---- any thread
  RailReport report() const;
  // What happened to a rail that carries nothing, and when: "eth1: eth1 is down, 0.3 s ago".
  std::string story(int64_t now_ns) const;

 private:
  RailState change(RailState state, const std::string& why, int64_t now_ns);  // returns the one before

  const int32_t peer_;
  const std::string name_;
  const uint32_t rails_;
  Counter sent_;
  Counter acknowledged_;
  Counter received_;
  Counter sent_again_;
  Counter connections_;
  Counter losses_;
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> goodput_{0};
  mutable Mutex mutex_;
  std::deque<RailChange> history_ TRESTLE_GUARDED_BY(mutex_);
};

class RailBook {
 public:
  // By the writer. The record lives as long as the book.
  RailRecord& add(int32_t peer, std::string name, uint32_t rails, int64_t now_ns);
  // By the writer: nothing is carried any more.
  void close(int64_t now_ns);
  // Any thread. By peer, then in the order in which they were added.
  std::vector<RailReport> read() const;

 private:
  mutable Mutex mutex_;
  std::deque<RailRecord> records_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
