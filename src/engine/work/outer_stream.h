// OuterStream: the stream of a device that the calls of a Stream are ordered on. It is the caller's; others submit work
// to it too.
//
// Owned by its Stream, which says who calls what: put() by one thread at a time, the rest by one thread at a time,
// which may be another one. put() and check() may take long: a driver whose stream has no room may hold up all its
// calls until there is room, and so until a gate is opened. So a thread that is needed to open that gate must not call
// these two.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"

namespace trestle {

// What one capture takes from one outer stream: calls there come one after the other in each launch of the graph, so
// they share memory. `held`: the place where a launch is held now; nullptr: nowhere. `said`: the log has said that
// calls are left out.
struct CaptureLane {
  std::atomic<const void*> held{nullptr};
  std::atomic<bool> said{false};
};

// Calls that were captured into a graph. Its functions run on threads of the driver, which must not call the driver,
// wait, or throw.
class GraphCalls {
 public:
  virtual ~GraphCalls() = default;
  // Whether launches are to be held for these calls. False: they go on without them.
  virtual bool are_ready() const = 0;
  // A launch has come to the place of the calls, and is held until that is opened. `overlaps`: another launch is held
  // here, or elsewhere on this lane.
  virtual void arrived(bool overlaps) = 0;
  // The graph has ended, and lets the calls go.
  virtual void ended() = 0;
};

struct StreamHandle;

// Where a kernel of the library goes that marks its place in the outer stream itself.
struct OuterPlace {
  StreamHandle* stream = nullptr;
  uint64_t id = 0;                // of the outer stream: no other one of the process has it. 0: a stream of the library
  uint32_t* mark_word = nullptr;  // the kernel writes the mark there when it begins; nullptr: there is none
  uint32_t mark = 0;
};

class OuterStream {
 public:
  // What was put into the outer stream, in the order of the calls of put(). Not set: it was not asked for.
  struct Ticket {
    std::optional<uint32_t> mark;
    std::optional<uint32_t> gate;
  };

  virtual ~OuterStream() = default;
  virtual int device() const = 0;  // that it belongs to
  // `mark`: has_reached() tells when everything that was submitted before is done. `gate`: what is submitted later does
  // not begin before open(). Errors: there is no gate to open.
  virtual Result<Ticket> put(bool mark, bool gate) = 0;
  // Whether put() would be refused because of the caller's thread, a capture or the outer stream's state.
  virtual Status may_put() = 0;
  // In place of a mark: a kernel that writes it when it begins. It is submitted by the function, whose error is
  // returned. Only where has_kernels(). What is submitted later comes after the kernel, so it needs no gate.
  virtual Result<Ticket> put_kernel(const std::function<Status(const OuterPlace&)>& submit) = 0;
  virtual bool has_kernels() const = 0;
  // Whether has_reached() and open() call no driver.
  virtual bool has_words() const = 0;
  // If what is submitted now goes into a graph, and is done at each launch of it: the lane of this capture; else
  // nullptr. put() is refused meanwhile.
  virtual Result<std::shared_ptr<CaptureLane>> captured_lane() = 0;
  // Takes a place in that graph, which keeps the calls for as long as it lives. The result stands for this place: its
  // put() gives the gate of the launch that has arrived. Only with the lane that is captured now, and as put().
  virtual Result<std::unique_ptr<OuterStream>> capture(std::shared_ptr<CaptureLane> lane,
                                                       std::shared_ptr<GraphCalls> calls) = 0;
  // An error if the outer stream has failed. Any thread, beside the others.
  virtual Status check() = 0;
  virtual Result<bool> has_reached(uint32_t mark) = 0;
  // In the order of the tickets, each once; that of a place in a graph once for each launch.
  virtual void open(uint32_t gate) = 0;
};

}  // namespace trestle
