// Numbers that the library counts while it runs, and that any thread may read at any time. Owned by the objects they
// describe.
#pragma once

#include <atomic>
#include <cstdint>

namespace trestle {

// One writer at a time, under a lock that its owner names, so counting is a plain addition. A thread that reads a
// number also sees what the same writer counted before it.
class Counter {
 public:
  void add(uint64_t by) { value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_release); }
  uint64_t get() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Bytes that are held: now, and the most so far. Any number of writers.
class ByteMeter {
 public:
  void add(uint64_t bytes) {
    const uint64_t now = now_.fetch_add(bytes, std::memory_order_acq_rel) + bytes;
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_acq_rel)) {
    }
  }
  void subtract(uint64_t bytes) { now_.fetch_sub(bytes, std::memory_order_acq_rel); }
  uint64_t now() const { return now_.load(std::memory_order_acquire); }
  uint64_t peak() const { return peak_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> now_{0};
  std::atomic<uint64_t> peak_{0};
};

}  // namespace trestle
