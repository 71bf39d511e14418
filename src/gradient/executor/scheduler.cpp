#include "gradient/executor/scheduler.h"

#include <algorithm>
#include <span>

#include "base/clock.h"

namespace trestle {
namespace {

// Times that a program supplies may be longer than the type holds.
uint64_t nanoseconds(double seconds) {
  constexpr double kMost = 18446744073709551616.0;  // 2^64
  const double ns = seconds * 1e9;
  return ns < kMost ? static_cast<uint64_t>(ns) : UINT64_MAX;
}

constexpr size_t kMostTensors = 1 << 20;
constexpr uint64_t kMostBytes = uint64_t{1} << 62;
constexpr size_t kMostNamed = 8;  // tensors in a sentence

// Whether a step may say that the tensor's gradient lies there; nullptr: in the registered memory.
bool lies_there(const TensorEntry& tensor, const std::byte* gradient) {
  if (gradient == nullptr) return tensor.gradient != nullptr || tensor.count == 0;
  return tensor.gradient == nullptr || tensor.gradient == gradient;
}

}  // namespace

Result<std::shared_ptr<GradientScheduler>> GradientScheduler::make(std::vector<trestleComm_t> comms,
                                                                   GradientSettings settings,
                                                                   std::unique_ptr<LinkAccess> access) {
  std::pair<int, int> first;  // ranks, and this one
  for (size_t link = 0; link < comms.size(); ++link) {
    std::pair<int, int> own;
    TRY(core_status(trestleCommCount(comms[link], &own.first), comms[link]));
    TRY(core_status(trestleCommUserRank(comms[link], &own.second), comms[link]));
    if (link == 0) first = own;
    const std::string name = "the communicator of link " + std::to_string(link);
    const auto others = std::span(comms).first(link);
    if (std::ranges::find(others, comms[link]) != others.end())
      return invalid_argument(name + " was given twice: each link needs its own");
    if (own == first) continue;
    return invalid_argument(name + " has this process as rank " + std::to_string(own.second) + " of " +
                            std::to_string(own.first) + ", and link 0 as rank " + std::to_string(first.second) +
                            " of " + std::to_string(first.first) + ": they must have the same ranks");
  }
  std::shared_ptr<GradientScheduler> scheduler(
      new GradientScheduler(std::move(comms), std::move(settings), std::move(access)));
  scheduler->access_->on_failure([one = scheduler.get()](const Error& error) { one->link_failed(error); });
  return scheduler;
}

GradientScheduler::~GradientScheduler() = default;

// ---- failures of communicators

// A failure counts also if nothing is under way on that link: the other ranks stop too, so their messages on other
// links never come.
void GradientScheduler::link_failed(const Error& error) {
  const MutexLock lock(failure_mutex_);
  if (!link_failure_) link_failure_ = error;
  if (followed_ == nullptr) return;
  followed_->board.fail(*link_failure_);
  followed_->executor->wake();
}

void GradientScheduler::follow(Running& running) {
  const MutexLock lock(failure_mutex_);
  followed_ = &running;
  if (link_failure_) running.board.fail(*link_failure_);
}

void GradientScheduler::forget(const Running& running) {
  const MutexLock lock(failure_mutex_);
  if (followed_ == &running) followed_ = nullptr;
}

std::optional<Error> GradientScheduler::failure() {
  Running* const now = running();
  if (now != nullptr) {
    if (auto failure = now->board.failure()) return failure;
  }
  {
    const MutexLock lock(failure_mutex_);
    if (link_failure_) return link_failure_;
  }
  if (now == nullptr) return std::nullopt;
  Status status = check_communicator();  // it may be gone without a failure
  if (!status.ok()) now->board.fail(std::move(status).error());
  return now->board.failure();
}

// ---- registration

Result<uint32_t> GradientScheduler::add(TensorEntry tensor) {
  const MutexLock lock(mutex_);
  if (running() != nullptr) return invalid_usage("tensors are registered before the first plan or profile");
  if (registered_.size() == kMostTensors)
    return invalid_argument("there are " + std::to_string(kMostTensors) + " tensors already");
  // With this limit sums of bytes never overflow.
  if (tensor.bytes() > kMostBytes - registered_bytes_)
    return invalid_argument("with " + std::to_string(registered_bytes_) +
                            " bytes of other tensors, count is more than any memory holds");
  registered_bytes_ += tensor.bytes();
  registered_.push_back(std::move(tensor));
  return static_cast<uint32_t>(registered_.size() - 1);
}

size_t GradientScheduler::tensors() const {
  const MutexLock lock(mutex_);
  return registered_.size();
}

Result<GradientScheduler::Running*> GradientScheduler::candidate(std::unique_ptr<Running>& fresh) {
  if (running() != nullptr) return running();
  {
    const MutexLock lock(mutex_);
    fresh = std::make_unique<Running>(*this, registered_);
  }
  fresh->owned_executor =
      TRY(Executor::start(comms_, fresh->tensors, settings_, fresh->board, fresh->counts, fresh->trace, *access_));
  fresh->executor = fresh->owned_executor.get();
  follow(*fresh);
  return fresh.get();
}

void GradientScheduler::publish(std::unique_ptr<Running> fresh) {
  if (fresh == nullptr) return;
  const MutexLock lock(mutex_);
  owned_ = std::move(fresh);
  running_.store(owned_.get(), std::memory_order_release);
}

Status GradientScheduler::run(Running& now, std::unique_ptr<Running> fresh, std::function<Status()> job) {
  Status status = now.executor->run(std::move(job));
  if (status.ok() || now.board.failure()) publish(std::move(fresh));
  return status;
}

// ---- checks of the step's calls

std::string GradientScheduler::named(const Running& running, uint32_t tensor) const {
  return trestle::named(running.tensors, tensor);
}

Result<uint32_t> GradientScheduler::checked_tensor(const Running& running, int tensor) const {
  const size_t count = running.tensors.size();
  if (tensor >= 0 && static_cast<size_t>(tensor) < count) return static_cast<uint32_t>(tensor);
  return invalid_argument("there is no tensor " + std::to_string(tensor) + ": " + std::to_string(count) +
                          " are registered, from 0");
}

// What the calls of a step work on. Errors: there is no plan and no profile; the failure that has ended the scheduler.
Result<GradientScheduler::Running*> GradientScheduler::running_step(const char* verb) const {
  Running* const now = running();
  if (now == nullptr || now->board.has_failed()) return refuse_step(now, verb);
  return now;
}

Error GradientScheduler::refuse_step(const Running* running, const char* verb) {
  if (running != nullptr) return *running->board.failure();
  return invalid_usage(std::string("there is no plan yet, so there is nothing to ") + verb + ": GradPlan comes first");
}

Status GradientScheduler::check_communicator() const {
  for (const trestleComm_t comm : comms_) {
    trestleResult_t failure = trestleSuccess;
    TRY(core_status(trestleCommGetAsyncError(comm, &failure), comm));
    TRY(core_status(failure, comm));
  }
  return {};
}

// ---- a step

// Between two of these calls other code and data have filled the caches. So the usual case is straight code in one
// place, with that of trestleGradReady (gnu::hot), and the sentences are elsewhere.
Status GradientScheduler::ready(int number, std::byte* gradient) {
  Running* const now = running();
  if (now == nullptr || now->board.has_failed()) [[unlikely]]
    return refuse_step(now, "make ready");
  Running& step = *now;
  StepProfile* const profile = step.measuring.load(std::memory_order_acquire);
  const auto tensor = static_cast<uint32_t>(number);  // a negative number becomes more than any tensor's
  const bool marks = profile != nullptr || has_plan_.load(std::memory_order_acquire);
  if (!marks || tensor >= step.tensors.size() || !lies_there(step.tensors[tensor], gradient)) [[unlikely]]
    return refuse_ready(step, marks, number, gradient);
  const StepBoard::Marked marked = step.board.claim(tensor);
  if (marked != StepBoard::Marked::kYes) [[unlikely]]
    return refuse_mark(step, tensor, marked);
  if (profile != nullptr || step.trace.on()) [[unlikely]]
    note_ready(step, tensor, profile);
  if (step.board.settle(tensor, gradient)) step.executor->wake_for_mark();
  return {};
}

Error GradientScheduler::refuse_ready(const Running& step, bool marks, int number, const std::byte* gradient) const {
  const Result<uint32_t> tensor = checked_tensor(step, number);
  if (!tensor.ok()) return tensor.error();
  if (!marks) return invalid_usage("there is no plan, and no times are measured: GradPlan comes first");
  if (gradient != nullptr)
    return invalid_argument(named(step, tensor.value()) +
                            " was registered with its memory, and this is another one: give NULL");
  return invalid_argument(named(step, tensor.value()) + " was registered without memory: say where its gradient lies");
}

Error GradientScheduler::refuse_mark(const Running& step, uint32_t tensor, StepBoard::Marked marked) const {
  if (marked == StepBoard::Marked::kTwice) return invalid_usage(named(step, tensor) + " is ready already in this step");
  return invalid_usage("the result of " + named(step, tensor) +
                       " of the step before was not waited for: GradWaitParam or GradSynchronize comes first");
}

void GradientScheduler::note_ready(Running& step, uint32_t tensor, StepProfile* profile) {
  const int64_t now = monotonic_clock().now_ns();
  if (profile != nullptr) profile->ready(tensor, now);
  step.trace.note({TraceKind::kReady, tensor, 0, {}, step.board.ended() + 1, now, now});
}

Status GradientScheduler::wait(int number) {
  Running& step = *TRY(running_step("wait for"));
  const uint32_t tensor = TRY(checked_tensor(step, number));
  StepProfile* const profile = step.measuring.load(std::memory_order_acquire);
  if (step.board.is_ready(tensor))
    return invalid_usage(named(step, tensor) + " is ready in a step that has not ended: GradStepEnd comes first");
  if (step.board.ended() == 0 && profile == nullptr)
    return invalid_usage("no step has ended yet, so there is no result of " + named(step, tensor) + " to wait for");
  const int64_t called = monotonic_clock().now_ns();
  if (step.board.forward_needs(tensor) || step.board.awaits_mark(tensor)) step.executor->wake();
  if (!step.board.is_complete(tensor)) TRY(check_communicator());
  TRY(step.board.wait(tensor));
  const int64_t returned = monotonic_clock().now_ns();
  wait_ns_.fetch_add(static_cast<uint64_t>(returned - called), std::memory_order_relaxed);
  if (step.board.forward_at(tensor)) step.executor->wake();
  if (profile != nullptr) profile->waited(tensor, called, returned);
  step.trace.note({TraceKind::kWait, tensor, 0, {}, step.board.ended(), called, returned});
  return {};
}

Status GradientScheduler::end_step() {
  Running& step = *TRY(running_step("end"));
  if (step.measuring.load(std::memory_order_acquire) == nullptr && !has_plan_.load(std::memory_order_acquire))
    return invalid_usage("there is no plan, and no times are measured, so there is no step to end");
  const std::vector<uint32_t> missing = step.board.missing();
  if (!missing.empty()) {
    std::string sentence = "no gradient of ";
    for (size_t i = 0; i < std::min(missing.size(), kMostNamed); ++i)
      sentence.append(i == 0 ? "" : ", ").append(named(step, missing[i]));
    if (missing.size() > kMostNamed) sentence += " and of " + std::to_string(missing.size() - kMostNamed) + " more";
    return invalid_usage(sentence + " is ready in this step");
  }
  TRY(check_communicator());
  const int64_t now = monotonic_clock().now_ns();
  if (StepProfile* const profile = step.measuring.load(std::memory_order_acquire)) profile->end_step(now);
  step.trace.note({TraceKind::kStepEnd, 0, 0, {}, step.board.ended() + 1, now, now});
  step.board.end_step();
  const int64_t before = last_end_ns_.exchange(now, std::memory_order_relaxed);
  if (before != 0) last_step_ns_.store(static_cast<uint64_t>(now - before), std::memory_order_relaxed);
  return {};
}

Status GradientScheduler::synchronize() {
  Running& step = *TRY(running_step("wait for"));
  const int64_t called = monotonic_clock().now_ns();
  if (step.board.forward_over()) step.executor->wake();
  TRY(check_communicator());
  for (uint32_t i = 0; i < step.tensors.size(); ++i) {
    if (step.board.is_ready(i)) continue;
    if (step.board.awaits_mark(i)) step.executor->wake();
    TRY(step.board.wait(i));
  }
  wait_ns_.fetch_add(static_cast<uint64_t>(monotonic_clock().now_ns() - called), std::memory_order_relaxed);
  return {};
}

Result<ResultAge> GradientScheduler::age(int number) const {
  Running& step = *TRY(running_step("ask about"));
  const uint32_t tensor = TRY(checked_tensor(step, number));
  if (step.board.is_ready(tensor))
    return invalid_usage(named(step, tensor) + " is ready in a step that has not ended, so its result is not known");
  if (!step.board.is_waited(tensor)) {
    return invalid_usage("the result of " + named(step, tensor) +
                         " of the last step was not waited for: GradWaitParam or GradSynchronize comes first");
  }
  return step.board.age(tensor);
}

void GradientScheduler::drain() {
  Running* const now = running();
  if (now == nullptr) return;
  if (now->board.forward_over()) now->executor->wake();
  (void)now->executor->run([] { return Status(); });  // a failure has ended the steps too
}

SchedulerStatistics GradientScheduler::statistics() const {
  SchedulerStatistics all;
  all.wait_ns = wait_ns_.load(std::memory_order_relaxed);
  all.last_step_ns = last_step_ns_.load(std::memory_order_relaxed);
  all.plans = plans_.load(std::memory_order_relaxed);
  if (const Running* const now = running()) {
    all.steps = now->board.ended();
    all.messages = now->counts.messages.load(std::memory_order_relaxed);
    all.bytes = now->counts.bytes.load(std::memory_order_relaxed);
    all.nans = now->counts.nans.load(std::memory_order_relaxed);
    all.copied_bytes = now->counts.copied_bytes.load(std::memory_order_relaxed);
    all.delayed_updates = now->counts.delayed_updates.load(std::memory_order_relaxed);
    all.delayed_batches = now->counts.delayed_batches.load(std::memory_order_relaxed);
    // The two are read one after the other, and a processor may read the younger value of the first.
    const uint64_t delayed_steps = now->counts.delayed_steps.load(std::memory_order_relaxed);
    all.pending_batches = delayed_steps - std::min(delayed_steps, all.delayed_batches);
    all.age_sum = now->counts.age_sum.load(std::memory_order_relaxed);
    all.oldest_age = now->counts.oldest_age.load(std::memory_order_relaxed);
    all.compressed_elements = now->counts.compressed_elements.load(std::memory_order_relaxed);
    all.sent_elements = now->counts.sent_elements.load(std::memory_order_relaxed);
    all.compress_ns = now->counts.compress_ns.load(std::memory_order_relaxed);
    all.gain = now->counts.gain.load(std::memory_order_relaxed);
  }
  const MutexLock lock(mutex_);
  if (planned_) all.age = planned_->age;
  if (planned_) all.ratio = planned_->compressed ? planned_->compressed->ratio : 1;
  if (planned_) all.planned_ns = nanoseconds(planned_->time.iteration_s);
  return all;
}

}  // namespace trestle
