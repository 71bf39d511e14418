// PhaseRun: the step interpreter. Runs the plan of one phase of one started operation over the transports, in segments.
//
// Owned by an Operation, driven by the engine under the rank's progress lock. It allocates when it is built, and where
// lists of pieces grow at first use; the same run is started again and again. Steps follow their derived dependencies
// by byte counters. Every step keeps a few segments in flight. Each segment is issued, polled and finished: as a
// message, or as work on data (engine/work).
//
// Transports never touch the bytes of a device. So there are three ways for a message of a phase on a device. With a
// bounce buffer (engine/prepare/bounces.h) a Send copies out of the device before its message goes, a Recv copies in
// after it came, and a Reduce reads what came where it lies. The run asks for no view then, because the device may be
// unable to read what a transport hands out. Over a peer path (memory/peer_paths.h) it is able to: a Recv and a Reduce
// ask for a view, which the device reads, and a Send gives the transport the device's memory. Over a path to another
// process a Send copies to an outbox, if there is room, else to its bounce buffer. A Recv and a Reduce offer a bounce
// buffer, and read what they get instead of it. The end of a message over a path may go through a bounce buffer at the
// same time (engine/work/host_shares.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/prepare/bounces.h"
#include "engine/prepare/prepared.h"
#include "engine/run/progress_lock.h"
#include "engine/run/statistics.h"
#include "engine/work/host_shares.h"
#include "engine/work/work_queue.h"
#include "kernels/reduce.h"
#include "memory/outbox.h"
#include "memory/region.h"
#include "transport/transport.h"

namespace trestle {

// The buffers of a started operation, indexed by BufferId. The send buffer is never written.
using Buffers = std::array<Region, 3>;

// The transport to each rank of the communicator (nullptr: none), the statistics that count the messages, the progress
// lock under which all of this runs, and where work on data goes. Without a queue it is done at once; then the lock is
// lent while a user's function runs. The queue is that of the operation's buffers.
struct Router {
  std::span<Transport* const> transports;
  Statistics* statistics = nullptr;
  ProgressLock* lock = nullptr;
  WorkQueue* work = nullptr;
  uint64_t* copy_left = nullptr;  // bytes that may still be copied in this round (EngineConfig::copy_bytes)
  Outbox* outbox = nullptr;       // DevicePlace::outbox
  Outbox* host_outbox = nullptr;  // DevicePlace::host_outbox
  uint64_t host_outbox_from = 0;  // DevicePlace::host_outbox_from
  HostShares* shares = nullptr;   // where messages to some peers are divided
  Transport* operator[](int32_t rank) const { return transports[static_cast<size_t>(rank)]; }
};

// The bounce blocks of an operation that none of its phases uses. There are as many blocks as phases may be in flight.
using FreeBounces = std::vector<const Region*>;

class PhaseRun {
 public:
  // queued: Router::work will be a queue. bounces: where the buffers are on a device (then there is a queue); else
  // nullptr. They outlive the run.
  PhaseRun(const PreparedPhase& phase, const Prepared& prepared, const Statistics& statistics, bool queued,
           FreeBounces* bounces);
  PhaseRun(const PhaseRun&) = delete;
  PhaseRun& operator=(const PhaseRun&) = delete;

  // number: the operation's, as in its messages. phase_number: chunk * stages + stage. turn: the phase's place in the
  // order of its dimension. buffers: outlive the run. touched: RecvRequest::touched of its messages and Work::touched;
  // must outlive the run.
  void start(const Buffers& buffers, uint64_t number, uint32_t phase_number, uint32_t turn, bool* touched);
  // After start(): the phase begins by multiplying its input (pre-multiplied sum). `unscaled`: the user's send buffer;
  // the products go to the phase's own. factor: one element. Both outlive the run.
  void scale_first(const Region& unscaled, const void* factor);
  // Does what can be done now. True if anything moved.
  Result<bool> advance(Router router);
  bool complete() const { return part_ == Part::kComplete; }
  // The phase will not go on, and nothing reads or writes its messages any more.
  void abandon();
  // What the phase waits for, for error messages: "message 2 of rank 5". Any rank it names is in `peers`.
  std::string awaited() const;
  // The rank that awaited() names; -1: none.
  int32_t awaited_rank() const;
  // A user-defined reduction runs, or waits in the queue. For threads that borrow the lock.
  bool in_user_function() const { return in_user_function_ || folds_ != 0; }
  // The dimensions that its messages use (a mask of Statistics::dimension_bit).
  uint32_t dimensions() const { return dimensions_; }

 private:
  enum class Part : uint8_t {
    kIdle,
    kScaling,  // the input is multiplied
    kSteps,
    kAveraging,  // the output is divided
    kComplete,
  };
  // A segment's messages.
  struct Slot {
    uint64_t bytes = 0;
    uint32_t posted = 0;   // receives that are posted: of a Reduce, or of a Recv on a device
    uint32_t bounced = 0;  // of these, those that have a bounce
    SendRequest send;
    std::byte* room = nullptr;          // in the outbox, which the message is read in
    std::byte* host_room = nullptr;     // in the outbox of host memory, for all of it or the part through the host
    uint64_t through_host = 0;          // of a Send's bytes, those at the end that the host carries beside a path
    HostShares::Sent divided;           // of a Send to a peer that HostShares::divides()
    int64_t ready_ns = 0;               // when the rest of it could have gone
    std::vector<RecvRequest> receives;  // Recv: one; Reduce: one per peer source
    std::vector<ConstPiece> read;
    std::vector<Piece> write;  // Recv; Reduce: only with bounces, room for one per receive
  };
  // A segment's work on data, and the lists that it points to.
  struct WorkSlot {
    Work work;
    std::vector<Piece> write;
    std::vector<std::vector<ConstPiece>> read;         // of sources in this rank's memory
    std::vector<std::span<const ConstPiece>> sources;  // `read`, or the view of a receive
  };
  struct StepRun {
    uint64_t segments = 1;
    uint64_t segment_bytes = 0;
    // Numbers of segments. issued: their messages were posted. submitted: their work, a copy or a reduction, was given
    // to the queue. finished: messages and work are done. A Copy has no messages, so each segment is issued when it is
    // submitted. A Send with bounces is submitted before it is issued, because its data is copied out first.
    uint64_t issued = 0;
    uint64_t submitted = 0;
    uint64_t finished = 0;
    uint64_t submitted_bytes = 0;
    uint64_t done_bytes = 0;
    uint32_t rooms = 0;  // of the segments submitted and not finished, those in an outbox
    uint32_t first_slot = 0;
    uint32_t slots = 0;
    uint32_t first_work = 0;
    uint32_t works = 0;
  };

  // The bounce blocks of a phase on a device.
  struct Bounces {
    FreeBounces& free;
    const Region* block = nullptr;  // from the start to the end of the steps, if it needs one
  };

  // The receive that is not complete; if there is none, the send or the link.
  struct Awaited {
    const StepRun* run = nullptr;
    const RecvRequest* receive = nullptr;
    const SendRequest* send = nullptr;
    int32_t link = -1;  // the rank for which the transport takes no message yet
  };
  Awaited first_awaited() const;
  const StepRun* first_at_work() const;
  bool at_work(uint32_t step) const;
  int32_t refused_by(uint32_t step) const;

  bool is_complete(uint32_t step) const { return steps_[step].finished == steps_[step].segments; }
  bool ready(uint32_t step, uint64_t upto) const { return ready(step, upto, has_work(step)); }
  bool ready(uint32_t step, uint64_t upto, bool is_work) const;
  bool has_turn(uint32_t step) const;
  bool has_room(uint32_t step) const {
    return has_places(phase_.bounces, step, [this](uint32_t before) { return is_complete(before); });
  }
  // A Send whose messages the peer's device reads where the data lies, but for a part that may go through the host.
  bool is_beside(uint32_t step) const { return bounces_ != nullptr && phase_.bounces[step].beside; }
  // Whether the step copies or reduces. Of a phase on a device a Recv copies in, and a Send with a bounce copies out.
  // A Send in place has none: its message waits until its data is done. Where a part of it may go through the host,
  // that part has work.
  bool has_work(uint32_t step) const {
    const Step& s = plan_.steps[step];
    if (!is_message(s)) return true;
    return bounces_ != nullptr && (s.kind == StepKind::kRecv || phase_.bounces[step].messages != 0);
  }
  Slot& slot(const StepRun& run, uint64_t segment) { return slots_[run.first_slot + segment % run.slots]; }
  WorkSlot& work_slot(const StepRun& run, uint64_t segment) { return works_[run.first_work + segment % run.works]; }
  const WorkSlot& work_slot(const StepRun& run, uint64_t segment) const {
    return works_[run.first_work + segment % run.works];
  }
  uint64_t segment_size(uint32_t step, uint64_t segment) const;
  uint64_t end_of(uint32_t step, uint64_t segment) const {
    return segment * steps_[step].segment_bytes + segment_size(step, segment);
  }
  void finish_segment(uint32_t step);
  void add_step_slots(uint32_t step, uint32_t in_flight, bool queued);

  Result<bool> advance_part(Router router);
  Result<bool> advance_steps(Router router);
  Result<bool> advance_step(uint32_t step, Router router);
  Result<bool> advance_send(uint32_t step, Router router);
  Result<bool> advance_recv(uint32_t step, Router router);
  Result<bool> advance_copy(uint32_t step, Router router);
  Result<bool> advance_reduce(uint32_t step, Router router);
  Result<bool> post_send(uint32_t step, Router router);
  bool finish_sent(uint32_t step, Router router);
  Result<bool> post_receives(uint32_t step, Slot& slot, uint64_t segment, Router router);
  Result<bool> post_receive(uint32_t step, Slot& slot, const Source& source, uint64_t segment, Router router);
  bool arrived(uint32_t step);
  Status submit_copy(uint32_t step, Router router);
  Status submit_reduce(uint32_t step, Router router);
  void count_submitted(uint32_t step);
  Result<bool> finish_copied(uint32_t step);
  Result<bool> finish_reduced(uint32_t step, Router router);
  void take_bounces();
  void give_bounces_back();
  Piece bounce(uint32_t step, uint64_t segment, uint32_t message, uint64_t bytes) const;
  std::span<const Piece> bounce_for_receive(uint32_t step, Slot& slot, int32_t peer, uint64_t segment) const;
  bool is_divided(uint32_t step, Router router) const;
  uint64_t bytes_through_host(uint32_t step, Router router);
  bool find_places(uint32_t step, Router router);
  bool find_room(uint32_t step, Router router);
  bool find_room_on_device(uint32_t step, Router router);
  void give_rooms_back(uint32_t step, Slot& segment, Router router);
  static bool is_view(const RecvRequest& request) { return request.pieces.empty() || !request.view.empty(); }
  static std::span<const ConstPiece> received(const RecvRequest& request, std::vector<ConstPiece>& list);
  Result<bool> advance_bounced_send(uint32_t step, Router router);
  Status submit_copy_out(uint32_t step, Router router);
  void note_sent(uint32_t step, Slot& segment, Router router);
  void note_read(uint32_t step, Slot& segment, Router router);
  Result<bool> is_copied_out(uint32_t step);
  Status submit_copy_in(uint32_t step, Router router);
  Status submit(WorkSlot& slot, Router router);
  Result<bool> take_result(Work& work);
  void collect_whole(const BlockTable& table, const Region* from);
  Status submit_scaling(Router router);
  Status submit_averaging(Router router);

  template <class P>
  void collect_pieces(const BlockRange& range, uint32_t logical_first, uint64_t begin, uint64_t bytes,
                      std::vector<P>& pieces) const;
  const Region& region(BufferId buffer) const { return (*buffers_)[static_cast<size_t>(buffer)]; }
  MessageTag tag(uint32_t step, uint32_t message, uint64_t offset) const;

  const PreparedPhase& phase_;
  const Plan& plan_;
  const CustomOp* const user_;  // a user-defined operator, or nullptr
  ReduceFunction reduce_;       // nullptr for a user-defined operator
  ReduceSpec spec_;
  uint32_t ranks_;
  const bool data_;
  const uint64_t check_;
  const uint32_t window_;                   // segments in flight of a step, and of messages that take turns together
  const bool tells_sizes_;                  // only the two ends of a message know its length
  const std::unique_ptr<Bounces> bounces_;  // or nullptr
  Part part_ = Part::kIdle;
  bool in_user_function_ = false;
  uint32_t folds_ = 0;  // submitted to the queue and not finished
  const Buffers* buffers_ = nullptr;
  const Region* unscaled_ = nullptr;
  const void* factor_ = nullptr;
  uint64_t number_ = 0;
  uint32_t phase_number_ = 0;
  uint32_t turn_ = 0;
  bool* touched_ = nullptr;
  uint32_t dimensions_ = 0;
  std::vector<StepRun> steps_;
  std::vector<Slot> slots_;
  std::vector<WorkSlot> works_;
  WorkSlot whole_;                // of the parts before and after the steps
  std::vector<uint32_t> active_;  // steps that are not complete, in plan order
};

}  // namespace trestle
