#include "gradient/executor/executor.h"

#include "base/out_of_memory.h"

namespace trestle {

Executor::Executor(trestleComm_t comm, const std::vector<TensorEntry>& tensors, const GradientSettings& settings,
                   StepBoard& board, TrafficCounts& counts)
    : comm_(comm),
      tensors_(tensors),
      settings_(settings),
      board_(board),
      counts_(counts),
      bell_(std::make_shared<Bell>()) {}

Result<std::unique_ptr<Executor>> Executor::start(trestleComm_t comm, const std::vector<TensorEntry>& tensors,
                                                  const GradientSettings& settings, StepBoard& board,
                                                  TrafficCounts& counts) {
  std::unique_ptr<Executor> executor(new Executor(comm, tensors, settings, board, counts));
  executor->thread_ = TRY(Thread::start([self = executor.get()] { self->loop(); }));
  return executor;
}

Executor::~Executor() {
  stop_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

Status Executor::run(std::function<Status()> body) {
  const auto job = std::make_shared<Job>();
  job->body = std::move(body);
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(job);
  }
  wake();
  while (!job->done.load(std::memory_order_acquire)) {
    const uint32_t before = job->told.count();
    if (!job->done.load(std::memory_order_acquire)) job->told.wait(before);
  }
  return job->status;
}

// ---- the thread

void Executor::loop() {
  for (;;) {
    const uint32_t before = bell_->count();
    const bool changed = unless_out_of_memory([this] { return turn(); },
                                              [this] {
                                                board_.fail({Code::kSystemError, "out of memory"});
                                                return true;  // jobs that wait for a turn end now
                                              });
    if (stop_.load(std::memory_order_acquire)) break;
    if (!changed) bell_->wait(before);
  }
  plan_.reset();
}

bool Executor::turn() {
  bool changed = plan_ != nullptr && collect();
  if (plan_ != nullptr && take_events()) changed = true;
  if (plan_ != nullptr && issue()) changed = true;
  return run_jobs() || changed;
}

bool Executor::collect() {
  bool changed = false;
  while (const auto complete = plan_->channel->poll()) {
    changed = true;
    if (board_.failure()) continue;  // the messages behind a failure are only awaited
    Status status = *complete;
    if (status.ok()) status = finish_oldest();
    if (!status.ok()) board_.fail(status.error());
  }
  return changed;
}

Status Executor::finish_oldest() {
  const StepMachine::Issue oldest = plan_->machine->oldest();
  TRY(plan_->channel->finish(oldest.message));
  plan_->machine->complete();
  for (const uint32_t tensor : plan_->list.messages[oldest.message].results) {
    board_.complete(tensor, steps_before_ + oldest.step + 1);
  }
  board_.tell();
  return {};
}

bool Executor::take_events() {
  bool changed = false;
  while (const auto tensor = board_.take_mark()) {
    plan_->machine->ready(*tensor);
    changed = true;
    // No message brings its result.
    if (!plan_->list.waits[*tensor]) board_.complete(*tensor, steps_before_ + plan_->machine->ready_in(*tensor));
  }
  if (changed) board_.tell();
  if (const auto forward = board_.forward(); forward && forward->ended_steps >= steps_before_) {
    plan_->machine->forward_at(forward->ended_steps - steps_before_, forward->tensor);
  }
  return changed;
}

bool Executor::issue() {
  bool changed = false;
  while (!board_.failure()) {
    const auto next = plan_->machine->next();
    if (!next) break;
    changed = true;
    const Status status = plan_->channel->start(next->message);
    if (!status.ok()) board_.fail(status.error());
  }
  return changed;
}

bool Executor::drained() const {
  return plan_ == nullptr || board_.failure() ||
         (plan_->channel->idle() && plan_->machine->finished(board_.ended() - steps_before_));
}

std::shared_ptr<Executor::Job> Executor::next_job() {
  const MutexLock lock(mutex_);
  if (jobs_.empty()) return nullptr;
  std::shared_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

bool Executor::run_jobs() {
  if (!drained()) return false;
  const std::shared_ptr<Job> job = next_job();
  if (job == nullptr) return false;
  job->status = unless_out_of_memory([&] { return run_body(*job); },
                                     [] {
                                       return Status(Error{Code::kSystemError, "out of memory"});
                                     });
  job->body = nullptr;
  job->done.store(true, std::memory_order_release);
  job->told.ring();
  return true;
}

Status Executor::run_body(Job& job) {
  if (auto failure = board_.failure()) return *std::move(failure);
  Status status = job.body();
  if (status.ok()) return status;
  trestleResult_t communicator = trestleSuccess;
  trestleCommGetAsyncError(comm_, &communicator);
  if (communicator != trestleSuccess) board_.fail(status.error());
  return status;
}

Result<std::unique_ptr<Executor::Prepared>> Executor::prepare(const GradientPlan& plan,
                                                              const GradientWorkload& workload) const {
  auto prepared = std::make_unique<Prepared>();
  prepared->list = step_messages(plan, workload);
  prepared->machine = std::make_unique<StepMachine>(prepared->list, static_cast<bool>(settings_.update));
  prepared->channel = TRY(MessageChannel::make({comm_, tensors_, settings_, board_, counts_, bell_}, prepared->list));
  return prepared;
}

void Executor::install(std::unique_ptr<Prepared> prepared) {
  plan_ = std::move(prepared);
  steps_before_ = board_.ended();
  board_.follow(plan_->list);
}

}  // namespace trestle
