// Gate and Mark: how the host and a stream wait for each other without a call that blocks.
//
// A gate holds streams until the host opens it. A mark tells the host how far a stream has come. Both count in tickets
// that ascend and wrap around. Each has two ways: a word in pinned memory that the stream itself reads or writes, and,
// for drivers without such calls, another one. The owner says which, or asks best_way().
//
// A device must outlive its gates and marks. Neither may be destroyed before every stream that it was put into has gone
// past it. create() and the destructors are slow (device.h): they may wait for all work of the context. So while any
// gate is held, no thread on which its opening depends may create or destroy a gate or a mark, open or destroy a
// device, or call another slow function, such as allocate() and free(); the wait would have no end.
//
// Gates that are held by host functions (kHost) are served one after another: the driver may call host functions of
// all streams on one thread. So a gate that is held also holds up every host function behind it, of any stream. Gates
// must then be opened in the order in which their streams reach them. Gates by words have no such order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.h"

namespace trestle {

enum class GateWay : uint8_t {
  kWord,  // the stream waits for, or writes, a word
  kHost,  // a gate: a host function waits; a mark: events are polled
};
inline GateWay best_way(const Device& device) {
  return device.supports_word_waits() ? GateWay::kWord : GateWay::kHost;
}

// Host to stream. One thread at a time may call hold(), and one, perhaps another, open() and open_all().
class Gate {
 public:
  // word: pinned memory that outlives the gate and holds 0; nullptr: the gate allocates its own.
  static Result<std::unique_ptr<Gate>> create(Device& device, GateWay way, uint32_t* word = nullptr);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate();

  // The stream goes no further until open() of the ticket that this returns, or of a later one. Enqueues. With kHost it
  // allocates a few bytes, and a thread of the driver waits.
  Result<uint32_t> hold(StreamHandle* stream);
  void open(uint32_t ticket);  // never one that was opened already
  void open_all();             // every ticket that hold() has returned so far
  // Tickets that are not open. For the thread that calls hold().
  uint32_t held() const {
    return last_.load(std::memory_order_relaxed) - std::atomic_ref<uint32_t>(*word_).load(std::memory_order_acquire);
  }

 private:
  Gate(Device& device, GateWay way, uint32_t* word, bool owns_word)
      : device_(device), way_(way), owns_word_(owns_word), word_(word) {}
  Device& device_;
  const GateWay way_;
  const bool owns_word_;
  uint32_t* const word_;            // the last ticket that is open
  std::atomic<uint32_t> last_ = 0;  // the last ticket that hold() gave out; open_all() may run beside hold()
};

// A gate in a graph, which is held anew at each launch. The launches of one graph come one after the other. Only by a
// word in memory that the device waits for: where the driver holds streams by host functions, those of all graphs could
// wait for each other.
//
// The word is pinned memory, 4-byte aligned, and outlives the graph. Any thread, but open() and close() take turns.
class GraphGate {
 public:
  GraphGate(Device& device, uint32_t* word) : device_(device), word_(word) { open(); }
  GraphGate(const GraphGate&) = delete;
  GraphGate& operator=(const GraphGate&) = delete;
  // Puts it into the graph that the stream is being captured into. Each launch first calls arrived(argument), on a
  // thread of the driver, which must not call the driver, and then goes no further while the gate is closed.
  Status capture(StreamHandle* captured, void (*arrived)(void*), void* argument);
  bool close();  // in arrived(). False: it was closed already, so another launch is held here
  void open();

 private:
  Device& device_;
  uint32_t* const word_;
};

// Stream to host, for one stream. One thread at a time may call put() and has_room(), and one, perhaps another, the
// rest.
class Mark {
 public:
  // At least `most` tickets can be on their way at the same time (kHost: as many events are made). word: as for a gate;
  // kHost does not use it. orders: other streams may wait for its tickets; then it makes as many events either way.
  static Result<std::unique_ptr<Mark>> create(Device& device, GateWay way, uint32_t most, uint32_t* word = nullptr,
                                              bool orders = false);
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark();

  bool has_room() const {
    return last_.load(std::memory_order_relaxed) - reached_.load(std::memory_order_relaxed) < most_;
  }
  // The ticket that is reached when everything submitted to the stream before has been done. Enqueues. Needs room.
  Result<uint32_t> put(StreamHandle* stream);
  // put() where a kernel writes the ticket when it begins: submit(word, ticket) submits the kernel. Only with kWord.
  template <class Submit>
  Result<uint32_t> put_by(StreamHandle* stream, Submit&& submit) {
    const uint32_t ticket = last_.load(std::memory_order_relaxed) + 1;
    stream_.store(stream, std::memory_order_relaxed);
    TRY(submit(word_, ticket));
    last_.store(ticket, std::memory_order_release);
    return ticket;
  }
  // Of a mark that orders. Another stream of the device waits for the ticket that put() returned last or before, or for
  // a later one if that has no event (as put_for_others() gives it). By events and not by words, so that the driver
  // knows of the order: streams may share a queue of the device. Enqueues. Threads: as for put().
  Status let_wait(StreamHandle* other, uint32_t ticket);
  // As put(), for a ticket that other streams will probably wait for. It costs one more command.
  Result<uint32_t> put_for_others(StreamHandle* stream);
  // Asks. The last ticket that was reached; 0: none yet. Error: the device failed, found at the latest in the 1024th
  // call that finds nothing new.
  Result<uint32_t> reached();
  // reached(), but with kWord it never asks the driver, so a failure of the device stays unnoticed.
  Result<uint32_t> reached_by_word();
  // Whether every ticket was reached that put() has returned so far.
  Result<bool> is_clear();
  // Whether `ticket` was reached, by what reached() returned.
  static bool is_past(uint32_t reached, uint32_t ticket) { return static_cast<int32_t>(reached - ticket) >= 0; }

 private:
  Mark(Device& device, GateWay way, uint32_t most) : device_(device), way_(way), most_(most) {}
  Status prepare(bool orders);
  Status record(uint32_t ticket);

  Device& device_;
  const GateWay way_;
  const uint32_t most_;
  uint32_t* word_ = nullptr;
  bool owns_word_ = false;
  std::vector<EventHandle*> events_;  // of ticket t: t modulo most_
  std::vector<uint32_t> recorded_;    // the last ticket that each of them was recorded for; kWord only
  // put() may run beside reached().
  std::atomic<uint32_t> last_ = 0;
  std::atomic<uint32_t> reached_ = 0;
  std::atomic<StreamHandle*> stream_ = nullptr;
  uint32_t vain_polls_ = 0;
};

}  // namespace trestle
