// Gate and Mark: how the host and a stream wait for each other without a call that blocks.
//
// A gate holds streams until the host opens it. A mark tells the host how far a stream has come. Both count in tickets
// that ascend and wrap around. Each has two ways: a word in pinned memory that the stream itself reads or writes, and,
// for drivers without such calls, another one. The owner says which, or asks best_way().
//
// A device must outlive its gates and marks. Neither may be destroyed before every stream that it was put into has gone
// past it. create() and the destructors are slow (device.h): they may wait for all work of the context. So while any
// gate is held, nobody on whom its opening depends may create or destroy a gate or a mark, open or destroy a device, or
// call another slow function, such as allocate() and free(); the wait would have no end.
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
  static Result<std::unique_ptr<Gate>> create(Device& device, GateWay way);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate();

  // The stream goes no further until open() of the ticket that this returns, or of a later one. Enqueues. With kHost it
  // allocates a few bytes, and a thread of the driver waits.
  Result<uint32_t> hold(StreamHandle* stream);
  void open(uint32_t ticket);  // never one that was opened already
  void open_all();             // that hold() has returned from so far

 private:
  Gate(Device& device, GateWay way, uint32_t* word) : device_(device), way_(way), word_(word) {}
  Device& device_;
  const GateWay way_;
  uint32_t* const word_;            // the last ticket that is open
  std::atomic<uint32_t> last_ = 0;  // that was given out; open_all() may run beside hold()
};

// Stream to host, for one stream. One thread at a time.
class Mark {
 public:
  // At least `most` tickets can be on their way at the same time (kHost: as many events are made).
  static Result<std::unique_ptr<Mark>> create(Device& device, GateWay way, uint32_t most);
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark();

  bool has_room() const { return last_ - reached_ < most_; }
  // The ticket that is reached when everything submitted to the stream before has been done. Enqueues. Needs room.
  Result<uint32_t> put(StreamHandle* stream);
  // Asks. The last ticket that was reached; 0: none yet. Error: the device failed, found at the latest in the 1024th
  // call that finds nothing new.
  Result<uint32_t> reached();
  // Whether `ticket` was reached, by what reached() returned.
  static bool is_past(uint32_t reached, uint32_t ticket) { return static_cast<int32_t>(reached - ticket) >= 0; }

 private:
  Mark(Device& device, GateWay way, uint32_t most) : device_(device), way_(way), most_(most) {}
  Status prepare();

  Device& device_;
  const GateWay way_;
  const uint32_t most_;
  uint32_t* word_ = nullptr;
  std::vector<EventHandle*> events_;  // of ticket t: t modulo most_
  uint32_t last_ = 0;
  uint32_t reached_ = 0;
  uint32_t vain_polls_ = 0;
  StreamHandle* stream_ = nullptr;
};

}  // namespace trestle
