#include "comm/calls/call_path.h"

#include "base/log.h"
#include "base/scope_exit.h"
#include "comm/calls/call_log.h"
#include "engine/prepare/call_bytes.h"
#include "engine/run/progress.h"

namespace trestle {

CallPath::CallPath(const Membership& membership, Engine& engine, ControlMesh& mesh,
                   std::shared_ptr<MemRegistrations> memory, const Stream& own_stream)
    : membership_(membership),
      engine_(engine),
      mesh_(mesh),
      memory_(std::move(memory)),
      own_stream_(own_stream),
      call_check_(membership.settings().config.check_calls
                      ? std::make_unique<CallCheck>(membership.rank(), membership.names())
                      : nullptr),
      planner_(membership, engine),
      sent_(static_cast<size_t>(membership.ranks())),
      received_(static_cast<size_t>(membership.ranks())) {}

// ---- one call

Status CallPath::submit(const Call& call, const std::shared_ptr<Stream>& stream) {
  TRY(stream->check_open());
  if (stream->has_outer() || call.request.place == MemoryPlace::kDevice) [[unlikely]]
    return submit_prepared(call, stream);
  {
    const MutexLock lock(submit_mutex_);
    log_at_info(call, *stream, true);
    stream->used_by(engine_);
    if (planner_.is_express(call)) {
      TRY(submit_express(call, stream));
      if (engine_.pending() == 0) return {};
    } else {
      const PreparedCall prepared = TRY(planner_.prepare(call, Lane()));  // only staging on a device has lanes
      enqueue(bind(call, prepared, false), *stream);
    }
  }
  committed();
  return {};
}

// Prepares before it enters the outer stream: a driver may let a thread that needs memory wait until that stream moves
// on. Once the stream is held for this call, it does not move on before the call ends. submit_mutex_ is not held while
// the driver gives memory and the outer stream takes the call, because other threads of the library need it.
Status CallPath::submit_prepared(const Call& call, const std::shared_ptr<Stream>& stream) {
  const PreparedCall prepared = TRY(planner_.prepare(call, {stream}));
  {
    const MutexLock in_order(outer_mutex_);
    if (planner_.is_on_device_board(call) && stream->has_outer()) {
      TRY(submit_kernel(call, prepared, stream));
    } else {
      StreamEntry entry = TRY(stream->enter());
      enqueue(commit(call, prepared, *stream, {}), *stream, std::move(entry));
    }
  }
  committed();
  return {};
}

// The call becomes a kernel in the outer stream. The kernel needs the call's number, so an error of the driver fails
// the communicator. A call that must wait for other calls is held as any other.
Status CallPath::submit_kernel(const Call& call, const PreparedCall& prepared, const std::shared_ptr<Stream>& stream) {
  TRY(stream->may_enter());
  Operation* const operation = commit(call, prepared, *stream, {});
  ScopeExit unused([operation] { operation->engine().retire(operation); });
  DeviceBoard& board = *engine_.device_board();
  ExpressCall& express = *operation->express();
  const auto launch = [&](const OuterPlace& place) { return board.launch_on(place, express); };
  auto entry = board.is_next(express) ? stream->enter_kernel(engine_, launch) : stream->enter();
  if (!entry.ok()) {
    engine_.fail_of_user(entry.error());  // with the name of this rank
    return std::move(entry).error();
  }
  unused.release();
  enqueue(operation, *stream, std::move(entry).value());
  return {};
}

// If the stream is idle, the calling thread runs the call at once. A call that is not complete after the thread's spins
// becomes an ordinary operation.
Status CallPath::submit_express(const Call& call, const std::shared_ptr<Stream>& stream) {
  ExpressCall express = express_call(call, next_number_, engine_.express()->next_sequence());
  if (stream->idle() && !stream->failed() && run_express(express)) {
    take_number(call);
    engine_.statistics().ran_express(call.request.collective,
                                     bytes_of(call.request, false, membership_.rank(), membership_.ranks()));
    return {};
  }
  Operation* operation = bind(call, TRY(planner_.prepare(call, {stream})), true);
  operation->make_express(express);
  enqueue(operation, *stream);
  return {};
}

ExpressCall CallPath::express_call(const Call& call, uint64_t number, uint64_t sequence) {
  const PrepareRequest& r = call.request;
  ExpressCall express;
  express.collective = r.collective;
  express.reduce = find_own_reduce(r.type, r.op);
  express.factor = r.op == kPreMulSum ? r.custom->scalar() : nullptr;
  express.spec = {r.type, r.op, r.op == ReduceOp::kAvg ? static_cast<uint32_t>(membership_.ranks()) : 0, false};
  express.send = static_cast<const std::byte*>(call.send);
  express.recv = static_cast<std::byte*>(call.recv);
  express.elements = r.count;
  express.bytes = r.count * size_of(r.type);
  express.root = r.root;
  express.half = r.half;
  express.number = number;
  express.check = check_of(r, kOverBoard);
  express.sequence = sequence;
  return express;
}

// The calling thread runs the call if no other thread drives the engine. It gives up where a waiter would sleep.
bool CallPath::run_express(ExpressCall& express) {
  constexpr int kLooksPerFailure = 100;
  if (engine_.pending() != 0 || !engine_.try_lock()) return false;
  Pause pause(engine_.patience());
  bool done = engine_.express()->poll(express);
  while (!done && pause.pass() && !(pause.looks() % kLooksPerFailure == 0 && engine_.failed())) {
    done = engine_.express()->poll(express);
  }
  engine_.unlock();
  if (done) pause.moved();
  return done;
}

Operation* CallPath::bind(const Call& call, const PreparedCall& prepared, bool over_board,
                          std::optional<uint64_t> ahead) {
  const CallBytes reach = reach_of(call.request, call.sending, membership_.rank(), membership_.ranks());
  if (memory_->bytes() != 0) drop_unmapped(call, reach);
  const auto region_of = [&](const void* base, uint64_t bytes) {
    if (call.request.place == MemoryPlace::kHost) return look_at(base, bytes, memory_.get());
    return private_region(const_cast<void*>(base), bytes, engine_.device());
  };
  const Region send = region_of(call.send, reach.given);
  const Region recv = region_of(call.recv, reach.taken);
  Operation* operation = engine_.acquire(prepared.prepared);
  operation->bind(send, recv, ahead ? *ahead : take_number(call),
                  call.timeout_ns < 0 ? membership_.settings().config.timeout_ns : call.timeout_ns, prepared.claims);
  engine_.statistics().submitted(call.request.collective,
                                 bytes_of(call.request, call.sending, membership_.rank(), membership_.ranks()),
                                 over_board);
  engine_.count_pending(1);
  return operation;
}

void CallPath::enqueue(Operation* operation, Stream& stream, StreamEntry entry) {
  ScopeExit unused([this, operation] { engine_.retire(operation); });
  stream.enqueue(std::span<Operation* const>(&operation, 1), std::move(entry));
  unused.release();
}

// ---- calls of a group

Operation* CallPath::commit(const Call& call, const PreparedCall& prepared, Stream& stream,
                            std::optional<uint64_t> ahead) {
  const MutexLock lock(submit_mutex_);
  log_at_info(call, stream, true, ahead);
  stream.used_by(engine_);
  const bool over_board = planner_.is_express(call);
  const bool on_device = planner_.is_on_device_board(call);
  Operation* operation = bind(call, prepared, over_board || on_device, ahead);
  if (over_board || on_device) {
    const uint64_t sequence = on_device ? engine_.device_board()->next_sequence() : engine_.express()->next_sequence();
    operation->make_express(express_call(call, operation->number(), sequence));
  }
  if (call.request.captured) count_replay(call, *ahead);
  return operation;
}

void CallPath::committed() {
  engine_.issued();
  Progress::call_issued(engine_);
}

std::optional<uint64_t> CallPath::number_ahead(const Call& call) {
  if (call_check_ == nullptr || call.request.peer >= 0) return std::nullopt;
  const MutexLock lock(submit_mutex_);
  return take_number(call);
}

void CallPath::skip(const Call& call, const Stream& stream, std::optional<uint64_t> ahead) {
  const bool numbered = call_check_ != nullptr;
  if (!numbered && !log_enabled(LogLevel::kInfo, Subsystem::kCall)) return;
  const MutexLock lock(submit_mutex_);
  log_at_info(call, stream, numbered, ahead);
  if (numbered && !ahead) take_number(call);
}

// ---- numbers, and the comparison of calls

uint64_t CallPath::take_number(const Call& call) {
  const int32_t peer = call.request.peer;
  uint64_t number = next_number_of(peer, call.sending)++;
  if (peer >= 0) {
    number |= kPointToPoint;
  }
  announce_if_checked(call, number);
  return number;
}

void CallPath::announce_if_checked(const Call& call, uint64_t number) {
  const int32_t peer = call.request.peer;
  if (peer >= 0 && log_enabled(LogLevel::kInfo, Subsystem::kP2p)) log_if_first(call);
  if (call_check_ != nullptr) announce_call({number, peer, call.sending}, summary_of(call.request));
}

Result<uint64_t> CallPath::number_capture(const Call& call) {
  const MutexLock lock(submit_mutex_);
  const int32_t peer = call.request.peer;
  uint64_t& next = captures_[{peer, call.sending}];
  if (next == kMostCaptures) {
    return Error{Code::kInvalidUsage, "communicator " + membership_.name() + " has had " +
                                          std::to_string(kMostCaptures) + " captured calls: it takes no more"};
  }
  const uint64_t number = captured_number(next) | (peer >= 0 ? kPointToPoint : 0);
  replays_.emplace(std::tuple(peer, call.sending, number), 0);
  ++next;
  announce_if_checked(call, number);
  return number;
}

void CallPath::count_replay(const Call& call, uint64_t number) {
  const auto captured = replays_.find({call.request.peer, call.sending, capture_of(number)});
  if (captured != replays_.end()) captured->second = number + 1;
}

void CallPath::forget_capture(const Call& call, uint64_t number) {
  const MutexLock lock(submit_mutex_);
  replays_.erase({call.request.peer, call.sending, number});
}

void CallPath::take_number_if_checked(const char* function) {
  if (call_check_ != nullptr) announce_call({next_number_++}, summary_of(function));
}

uint64_t CallPath::number_split() {
  const MutexLock lock(submit_mutex_);
  take_number_if_checked("CommSplit");
  return next_split_++;
}

void CallPath::number_finalization() {
  const MutexLock lock(submit_mutex_);
  take_number_if_checked("CommFinalize");
}

uint64_t CallPath::calls_made(const OperationKey& like) {
  const MutexLock lock(submit_mutex_);
  if ((like.number & kCaptured) == 0) return next_number_of(like.peer, like.sending);
  const auto captured = replays_.find({like.peer, like.sending, capture_of(like.number)});
  if (captured != replays_.end()) return captured->second & ~kPointToPoint;
  // Its graph has ended, so all that it was to do is done; or it was not captured yet.
  const auto captures = captures_.find({like.peer, like.sending});
  const uint64_t next = captures == captures_.end() ? 0 : captured_number(captures->second);
  return capture_of(like.number & ~kPointToPoint) < next ? (like.number & ~kPointToPoint) + 1 : 0;
}

bool CallPath::has_called_split(uint64_t number) {
  const MutexLock lock(submit_mutex_);
  return number < next_split_;
}

// A call that differs fails the communicator, so all ranks are told.
void CallPath::announce_call(const OperationKey& operation, const CallSummary& summary) {
  auto letter = call_check_->made(operation, summary);
  if (!letter.ok()) return engine_.fail(std::move(letter).error());
  if (letter.value()) mesh_.send_letter(letter.value()->to, letter.value()->text);
}

void CallPath::compare_call(int32_t from, const std::string& letter) {
  if (call_check_ == nullptr) return;
  const Status same = call_check_->heard(from, letter);
  if (!same.ok()) engine_.fail(same.error());
}

// ---- log lines

void CallPath::log_numbered(const Call& call, const Stream& stream, bool numbered, std::optional<uint64_t> ahead) {
  std::optional<uint64_t> number;
  if (numbered) number = ahead ? *ahead : next_number_of(call.request.peer, call.sending);
  log_call(membership_, call, &stream == &own_stream_ ? nullptr : &stream, number);
}

// The user's first send to a peer, and first receive from it.
void CallPath::log_if_first(const Call& call) {
  if (call.measuring || !logged_pairs_.insert({call.request.peer, call.sending}).second) return;
  log_first_message(membership_, call);
}

// ---- registered memory

Status CallPath::deregister_memory(uint64_t id) {
  const MutexLock lock(submit_mutex_);
  if (engine_.settled_pending() != 0) {
    return Error{Code::kInvalidUsage,
                 "operations of communicator " + membership_.name() +
                     " are under way, and peers may be reading the memory: synchronize, then deregister it"};
  }
  return memory_->remove(id);
}

// Other memory may lie at the addresses now. Peers must not be told to read the old memory.
void CallPath::drop_unmapped(const Call& call, const CallBytes& reach) {
  const int dropped = memory_->drop_unmapped(call.send, reach.given) + memory_->drop_unmapped(call.recv, reach.taken);
  if (dropped == 0) return;
  LOG(kWarn, kAlloc,
      "%s: a buffer lies where memory was registered with trestleCommRegister and has been unmapped since: it is "
      "copied from now on; call trestleCommDeregister before munmap",
      membership_.own_name().c_str());
}

}  // namespace trestle
