#include "comm/communicator/communicator.h"

#include <sched.h>

#include <algorithm>
#include <functional>

#include "algorithms/catalog.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "comm/setup/together.h"
#include "comm/setup/version_line.h"
#include "comm/watch/mesh_poller.h"
#include "comm/watch/process_exit.h"
#include "comm/watch/stop_flags.h"
#include "rendezvous/giving_up.h"
#include "sched/model/board_cost.h"
#include "sched/policy/policies.h"

namespace trestle {

// ---- creation

Communicator::Communicator(Bootstrap& bootstrap, const CommunicatorSettings& settings, Wiring wiring,
                           const RootIdentity& root)
    : membership_(bootstrap, settings, wiring, root),
      stops_(std::make_shared<StopFlags>()),
      memory_(wiring.memory),
      sent_(membership_.ranks()),
      received_(membership_.ranks()) {
  mesh_ = std::make_shared<MeshPoller>(bootstrap.take_mesh(), this, membership_.rank(), membership_.names());
  // Other names may have been in use while the communicator was made.
  mesh_->mesh().set_names(membership_.names());
  EngineConfig config;
  config.rank = membership_.rank();
  config.ranks = membership_.ranks();
  config.name = membership_.own_name();
  config.peer_names = membership_.names();
  config.clock = &monotonic_clock();
  for (int32_t r = 0; r < membership_.ranks(); ++r)
    config.dimension_of.push_back(membership_.topology().outermost_difference(membership_.rank(), r));
  // Judged by all processor masks together: ranks that are each bound to a core share none.
  config.crowded = wiring.ranks_per_processor > 1;
  config.spin_us = membership_.settings().config.spin_us;
  config.on_failure = [mesh = mesh_, rank = membership_.rank(), stops = stops_](const Error& error) {
    stops->raise();
    if (error.code == Code::kAborted) return;
    mesh->mesh().flood_error(error, rank);
  };
  config.work = std::move(wiring.work);
  config.calls_checked = membership_.settings().config.check_calls;
  if (config.calls_checked) call_check_ = std::make_unique<CallCheck>(membership_.rank(), membership_.names());
  config.on_overdue = [mesh = mesh_](const Overdue& overdue) { return mesh->inquire(overdue); };
  engine_ = std::make_shared<Engine>(std::move(config), std::move(wiring.transports), std::move(wiring.router),
                                     std::move(wiring.express));
}

Result<std::shared_ptr<Communicator>> Communicator::assemble(Bootstrap& bootstrap, const CommunicatorSettings& settings,
                                                             int64_t deadline_ns, const std::atomic<bool>* stop,
                                                             const RootIdentity& root) {
  const auto fail = [&bootstrap](Error error) {
    bootstrap.fail(error);
    return error;
  };
  auto wiring = wire(bootstrap, settings, deadline_ns);
  if (!wiring.ok()) return fail(std::move(wiring).error());
  const Config& config = settings.config;
  auto valid = validate({config.algorithm, config.schedule, static_cast<uint32_t>(config.chunks),
                         static_cast<uint32_t>(config.phases_in_flight), config.intra},
                        wiring.value().topology);
  if (!valid.ok()) return fail(std::move(valid).error());
  // No rank may send to a rank that has refused.
  auto together = bootstrap.barrier(deadline_ns);
  if (!together.ok()) return fail(std::move(together).error());
  const CalibrationPlace calibration = wiring.value().calibration;
  const bool measure = wiring.value().measure;
  std::shared_ptr<Communicator> communicator(new Communicator(bootstrap, settings, std::move(wiring).value(), root));
  communicator->mesh_->start();
  auto driven = communicator->engine_->opened();
  if (driven.ok()) driven = Progress::process().add(communicator->engine_);
  if (driven.ok()) driven = Progress::process().add(std::static_pointer_cast<Pollable>(communicator->mesh_));
  if (!driven.ok()) {
    communicator->engine_->fail(driven.error());  // tells the other ranks
    return driven.error();
  }
  leave_at_exit(communicator);
  if (measure) {
    const Status measured = communicator->calibrate(calibration, stop);
    if (!measured.ok()) {
      if (stop != nullptr && *stop && !exits()) communicator->abort();
      communicator->engine_->fail(measured.error());
      return measured.error();
    }
  }
  communicator->membership_.log_topology(communicator->engine_->express() != nullptr);
  return communicator;
}

Result<std::shared_ptr<Communicator>> Communicator::create(const UniqueIdBytes& id, int32_t nranks, int32_t rank,
                                                           const CommunicatorSettings& settings,
                                                           std::atomic<bool>& stop) {
  const StopAtExit making(stop);
  if (rank == 0) log_version(settings.config);
  const int64_t deadline = deadline_of(settings);
  BootstrapConfig config = bootstrap_config(settings.config, nranks, rank, id);
  config.deadline_ns = deadline;
  config.abort = &stop;
  auto bootstrap = TRY(Bootstrap::join(config));
  return assemble(*bootstrap, settings, bootstrap->deadline_ns(), &stop, {bootstrap->job(), rank});
}

Result<std::vector<std::shared_ptr<Communicator>>> Communicator::create_all(int32_t nranks,
                                                                            const CommunicatorSettings& settings) {
  log_version(settings.config);
  const int64_t deadline = deadline_of(settings);
  BootstrapConfig config = bootstrap_config(settings.config, nranks, 0, UniqueIdBytes{});
  config.deadline_ns = deadline;
  auto bootstraps = TRY(Bootstrap::join_in_process(config));
  std::vector<std::shared_ptr<Communicator>> made(nranks);
  TRY(run_together(made.size(), [&](size_t r) -> Status {
    made[r] = TRY(assemble(*bootstraps[r], settings, deadline, nullptr, {bootstraps[r]->job(), bootstraps[r]->rank()}));
    return {};
  }));
  return made;
}

Communicator::~Communicator() {
  destroy(0);
}

// ---- preparing

uint64_t Communicator::group_segment_bytes(const void* self, const std::vector<int32_t>& group) {
  return static_cast<const Communicator*>(self)->membership_.routing().group_segment_bytes(group);
}

Result<ScheduleCache::Entry> Communicator::schedule_for(const PrepareRequest& request) {
  SelectionRequest what;
  what.collective = request.collective;
  what.element_bytes = static_cast<uint32_t>(size_of(request.type));
  what.bytes = vector_elements(request, membership_.ranks()) * what.element_bytes;
  what.root = request.root;
  what.rank_order = request.op == kUserInOrder;
  what.blocks = known_block_bytes(request);
  return schedule_for(what, request.options);
}

Result<ScheduleCache::Entry> Communicator::schedule_for(const SelectionRequest& what, const SharedOptions& options) {
  return schedules_.get(what, options.text(), [&]() -> Result<Schedule> {
    const Config& config = membership_.settings().config;
    SelectionConfig selection{config.algorithm, config.schedule, static_cast<uint32_t>(config.chunks),
                              static_cast<uint32_t>(config.phases_in_flight), config.intra};
    if (!options) return select_schedule(what, membership_.topology(), selection);
    selection.algo = options->algorithm.value_or(selection.algo);
    selection.policy = options->schedule.value_or(selection.policy);
    if (options->chunks) selection.chunks = static_cast<uint32_t>(*options->chunks);
    TRY(validate(selection, membership_.topology()));
    return select_schedule(what, options->deterministic ? membership_.nominal() : membership_.topology(), selection);
  });
}

Result<std::shared_ptr<const Prepared>> Communicator::build(const Call& call) {
  const PrepareContext context{&membership_.topology(),
                               membership_.rank(),
                               membership_.settings().config.check_plans,
                               &group_segment_bytes,
                               this,
                               &plans_};
  if (call.request.peer >= 0) return prepare_point_to_point(call.request, call.sending, context);
  if (is_express(call)) {
    auto express = std::make_shared<Prepared>();
    express->collective = call.request.collective;
    express->type = call.request.type;
    express->op = call.request.op;
    express->custom = call.request.custom;
    express->count = call.request.count;
    express->ranks = membership_.ranks();
    express->check = check_of(call.request, kOverBoard);
    return std::shared_ptr<const Prepared>(std::move(express));
  }
  const ScheduleCache::Entry schedule = TRY(schedule_for(call.request));
  if (log_enabled(LogLevel::kInfo, Subsystem::kTuning)) say_schedule(call.request, *schedule);
  auto prepared = TRY(prepare(call.request, *schedule, context));
  if (prepared->staging_bytes > static_cast<uint64_t>(membership_.settings().config.staging_bytes)) {
    LOG(kInfo, kAlloc, "%s takes %llu bytes of staging, more than TRESTLE_STAGING (%lld)", to_string(*prepared).c_str(),
        static_cast<unsigned long long>(prepared->staging_bytes),
        static_cast<long long>(membership_.settings().config.staging_bytes));
  }
  return prepared;
}

Result<std::shared_ptr<const Prepared>> Communicator::prepare_call(const Call& call) {
  return cache_.get({call.request, call.sending}, [&] { return build(call); });
}

Status Communicator::hold_call(const Call& call) {
  TRY(cache_.pin({call.request, call.sending}, [&] { return build(call); }));
  return {};
}

// ---- submitting

bool Communicator::is_express(const Call& call) const {
  const PrepareRequest& r = call.request;
  if (r.peer >= 0 || engine_->express() == nullptr || is_user_defined(r.op)) return false;
  // The express path has no algorithms.
  if (r.options && r.options->algorithm && !r.options->algorithm->empty()) return false;
  if (r.options && r.options->schedule && !find_policy(*r.options->schedule).ok())
    return false;  // selection refuses it
  return engine_->express()->serves(r.collective, r.count * size_of(r.type), r.half);
}

ExpressCall Communicator::express_call(const Call& call, uint64_t number) {
  const PrepareRequest& r = call.request;
  ExpressCall express;
  express.collective = r.collective;
  express.reduce = find_own_reduce(r.type, r.op);
  express.scale = r.op == kPreMulSum ? r.custom.get() : nullptr;
  express.spec = {r.type, r.op, r.op == ReduceOp::kAvg ? static_cast<uint32_t>(membership_.ranks()) : 0, false};
  express.send = static_cast<const std::byte*>(call.send);
  express.recv = static_cast<std::byte*>(call.recv);
  express.elements = r.count;
  express.bytes = r.count * size_of(r.type);
  express.root = r.root;
  express.half = r.half;
  express.number = number;
  express.check = check_of(r, kOverBoard);
  express.sequence = engine_->express()->next_sequence();
  return express;
}

// The calling thread runs the call if no other thread drives the engine. It gives up where a waiter would sleep.
bool Communicator::run_express(ExpressCall& express) {
  constexpr int kLooksPerFailure = 100;
  if (engine_->pending() != 0 || !engine_->try_lock()) return false;
  Pause pause(engine_->patience());
  bool done = engine_->express()->poll(express);
  while (!done && pause.pass() && !(pause.looks() % kLooksPerFailure == 0 && engine_->failed())) {
    done = engine_->express()->poll(express);
  }
  engine_->unlock();
  if (done) pause.moved();
  return done;
}

uint64_t Communicator::next_number(const Call& call) {
  const int32_t peer = call.request.peer;
  uint64_t number;
  if (peer < 0) {
    number = next_number_++;
  } else {
    number = kPointToPoint | (call.sending ? sent_ : received_)[peer]++;
    if (log_enabled(LogLevel::kInfo, Subsystem::kP2p)) say_first_message(call);
  }
  if (call_check_ != nullptr) tell_call({number, call.request.peer, call.sending}, summary_of(call.request));
  return number;
}

std::optional<uint64_t> Communicator::number_ahead(const Call& call) {
  if (call_check_ == nullptr || call.request.peer >= 0) return std::nullopt;
  const MutexLock lock(submit_mutex_);
  return next_number(call);
}

void Communicator::skip(const Call& call, const Stream& stream, std::optional<uint64_t> ahead) {
  const bool numbered = call_check_ != nullptr;
  if (!numbered && !log_enabled(LogLevel::kInfo, Subsystem::kCall)) return;
  const MutexLock lock(submit_mutex_);
  log_call(call, stream, numbered, ahead);
  if (numbered && !ahead) next_number(call);
}

void Communicator::tell_place(const char* function) {
  if (call_check_ != nullptr) tell_call({next_number_++}, summary_of(function));
}

Operation* Communicator::bind(const Call& call, const std::shared_ptr<const Prepared>& prepared, bool over_board,
                              std::optional<uint64_t> ahead) {
  if (memory_->bytes() != 0) check_memory(call);
  Operation* operation = engine_->acquire(prepared);
  operation->bind(const_cast<void*>(call.send), call.recv, ahead ? *ahead : next_number(call),
                  call.timeout_ns < 0 ? membership_.settings().config.timeout_ns : call.timeout_ns);
  engine_->statistics().submitted(call.request.collective,
                                  bytes_of(call.request, call.sending, membership_.rank(), membership_.ranks()),
                                  over_board);
  engine_->count_pending(1);
  return operation;
}

Operation* Communicator::commit(const Call& call, const std::shared_ptr<const Prepared>& prepared, Stream& stream,
                                std::optional<uint64_t> ahead) {
  const MutexLock lock(submit_mutex_);
  log_call(call, stream, true, ahead);
  stream.used_by(*engine_);
  const bool over_board = is_express(call);
  Operation* operation = bind(call, prepared, over_board, ahead);
  if (over_board) operation->make_express(express_call(call, operation->number()));
  return operation;
}

void Communicator::committed() {
  engine_->issued();
  Progress::process().work_started();
}

// If the stream is idle, the calling thread runs the call at once. If it is not complete after its spins, it becomes an
// ordinary operation.
Status Communicator::submit_express(const Call& call, const std::shared_ptr<Stream>& stream) {
  ExpressCall express = express_call(call, next_number_);
  if (stream->idle() && !stream->failed() && run_express(express)) {
    next_number(call);
    engine_->statistics().ran_express(call.request.collective,
                                      bytes_of(call.request, false, membership_.rank(), membership_.ranks()));
    return {};
  }
  Operation* operation = bind(call, TRY(prepare_call(call)), true);
  operation->make_express(express);
  enqueue(operation, *stream);
  return {};
}

// The call has its number: the other ranks count on it, so it cannot be refused any more.
void Communicator::enqueue(Operation* operation, Stream& stream) {
  unless_out_of_memory([&] { stream.enqueue({operation}); },
                       [&] {
                         engine_->fail_without_memory();
                         engine_->retire(operation);
                       });
}

Status Communicator::check_open() const {
  if (engine_->failed()) return *failure();
  if (closed_) return Error{Code::kInvalidUsage, "communicator " + membership_.name() + " was destroyed"};
  if (finalized_)
    return Error{Code::kInvalidUsage, "communicator " + membership_.name() + " was finalized: only Destroy may follow"};
  return {};
}

Status Communicator::submit(const Call& call, const std::shared_ptr<Stream>& stream) {
  TRY(check_open());
  TRY(stream->check_open());
  {
    const MutexLock lock(submit_mutex_);
    log_call(call, *stream, true);
    stream->used_by(*engine_);
    if (is_express(call)) {
      TRY(submit_express(call, stream));
      if (engine_->pending() == 0) return {};
    } else {
      auto prepared = TRY(prepare_call(call));
      enqueue(bind(call, prepared, false), *stream);
    }
  }
  committed();
  return {};
}

// ---- waiting

Status Communicator::synchronize(const std::atomic<bool>* stop) {
  const auto stopped = [stop] { return stop != nullptr && *stop; };
  Progress::process().wait([&] { return engine_->pending() == 0 || stopped(); }, [this] { return engine_; });
  if (engine_->failed()) return *failure();
  if (stopped()) return Error{Code::kAborted, "the wait for communicator " + membership_.name() + " was ended"};
  return {};
}

void Communicator::remote_failure(const Error& error) {
  std::string text = error.message;
  const std::string own = engine_->oldest_operation();
  if (!own.empty()) text += "; on " + membership_.own_name() + " " + own;
  // A call that differs concerns both ranks, whichever finds it, so it keeps its code. Other failures concern the rank
  // where they began.
  const bool shared = error.code == Code::kAborted || error.code == Code::kTimeout ||
                      error.code == Code::kInvalidUsage || error.code == Code::kReductionFailed;
  const Code code = shared ? error.code : Code::kRemoteError;
  engine_->fail({code, std::move(text)});
}

Result<double> Communicator::predict_us(Collective collective, uint64_t count, DataType type,
                                        const SharedOptions& options) {
  Call call;
  call.request.collective = collective;
  call.request.count = count;
  call.request.type = type;
  call.request.options = options;
  if (is_express(call)) {
    return static_cast<double>(board_time_ps(
               {collective, count * size_of(type), membership_.ranks(), membership_.ranks_per_processor()})) /
           1e6;
  }
  SelectionRequest what{.collective = collective, .element_bytes = static_cast<uint32_t>(size_of(type))};
  // A v-variant counts as if all its blocks were equal.
  const uint64_t elements = has_uneven_blocks(collective) ? count * static_cast<uint64_t>(membership_.ranks())
                                                          : vector_elements(call.request, membership_.ranks());
  what.bytes = elements * what.element_bytes;
  const ScheduleCache::Entry schedule = TRY(schedule_for(what, options));
  return static_cast<double>(predict_ns(*schedule, membership_.topology())) / 1000.0;
}

// A call that differs fails the communicator, so all ranks are told.
void Communicator::tell_call(const OperationKey& operation, const CallSummary& summary) {
  auto letter = call_check_->made(operation, summary);
  if (!letter.ok()) return engine_->fail(std::move(letter).error());
  if (letter.value()) mesh_->mesh().send_letter(letter.value()->to, letter.value()->text);
}

void Communicator::hear_call(int32_t from, const std::string& letter) {
  if (call_check_ == nullptr) return;
  const Status same = call_check_->heard(from, letter);
  if (!same.ok()) engine_->fail(same.error());
}

}  // namespace trestle
