#include "gradient/executor/executor.h"

namespace trestle {
namespace {

class AtJob {
 public:
  explicit AtJob(JobFlag& flag) : flag_(flag) { flag_.enter(); }
  ~AtJob() { flag_.leave(); }
  AtJob(const AtJob&) = delete;
  AtJob& operator=(const AtJob&) = delete;

 private:
  JobFlag& flag_;
};

}  // namespace

Executor::Executor(const std::vector<trestleComm_t>& comms, const std::vector<TensorEntry>& tensors,
                   const GradientSettings& settings, StepBoard& board, TrafficCounts& counts, StepTrace& trace,
                   LinkAccess& links)
    : comms_(comms),
      tensors_(tensors),
      settings_(settings),
      board_(board),
      counts_(counts),
      trace_(trace),
      links_(links),
      bell_(std::make_shared<Bell>()) {}

Result<std::unique_ptr<Executor>> Executor::start(const std::vector<trestleComm_t>& comms,
                                                  const std::vector<TensorEntry>& tensors,
                                                  const GradientSettings& settings, StepBoard& board,
                                                  TrafficCounts& counts, StepTrace& trace, LinkAccess& links) {
  std::unique_ptr<Executor> executor(new Executor(comms, tensors, settings, board, counts, trace, links));
  executor->thread_ = TRY(Thread::start("gradient scheduler", [self = executor.get()] { self->loop(); }));
  return executor;
}

Executor::~Executor() {
  stop_.store(true, std::memory_order_release);
  wake();
  // A job may wait for a message without a look at the board. The message may be on any link.
  if (job_.is_at_work())
    run_or_end_process("while a scheduler ends", [this] { end_links([](size_t) { return true; }); });
  thread_.join();
}

void Executor::end_links(const std::function<bool(size_t)>& is_busy) {
  const auto failure = board_.failure();
  for (size_t link = 0; failure && link < comms_.size(); ++link) {
    if (is_busy(link)) links_.fail_link(link, *failure);
  }
}

Status Executor::run(std::function<Status()> body) {
  const auto job = std::make_shared<Job>();
  job->body = std::move(body);
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(job);
  }
  wake();
  TRY(board_.until([&] { return job->done.load(std::memory_order_acquire); }));
  return job->status;
}

// ---- the thread

void Executor::loop() {
  for (;;) {
    const uint32_t before = bell_->count();
    const bool changed = turn();
    tell_other_ranks();
    if (stop_.load(std::memory_order_acquire)) break;
    if (changed) continue;
    if (run_ != nullptr && run_->is_supplied()) {
      bell_->doze(before);
    } else {
      bell_->wait(before);
    }
  }
  end_links([this](size_t link) { return run_ != nullptr && run_->is_busy(link); });
  run_.reset();
}

// If this rank lacks something, the other ranks wait for messages that it cannot send.
void Executor::tell_other_ranks() {
  if (told_) return;
  const auto failure = board_.failure();
  if (!failure) return;
  told_ = true;
  if (failure->code == Code::kSystemError) links_.fail(*failure);
}

bool Executor::turn() {
  const bool changed = run_ != nullptr && run_->turn();
  return run_jobs() || changed;
}

bool Executor::drained() const {
  return run_ == nullptr || board_.failure() || run_->drained();
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
  job->status = run_body(*job);
  job->body = nullptr;
  job->done.store(true, std::memory_order_release);
  board_.tell();
  return true;
}

Status Executor::run_body(Job& job) {
  const AtJob now(job_);
  if (auto failure = board_.failure()) return *std::move(failure);
  job_.begin();
  const Status status = job.body();
  if (status.ok()) return status;
  for (const trestleComm_t comm : comms_) {
    trestleResult_t communicator = trestleSuccess;
    trestleCommGetAsyncError(comm, &communicator);
    if (communicator != trestleSuccess) board_.fail(status.error());
  }
  return status;
}

Result<std::unique_ptr<StepRun>> Executor::prepare(const PlannedStep& step, const GradientWorkload& workload) const {
  return make_step_run({comms_, tensors_, settings_, board_, counts_, bell_, trace_}, step, workload);
}

void Executor::install(std::unique_ptr<StepRun> run) {
  run_ = std::move(run);
  run_->begin();
}

Result<uint32_t> Executor::bring_in() {
  if (run_ == nullptr) return uint32_t{0};
  Result<uint32_t> batches = run_->bring_in();
  if (!batches.ok()) board_.fail(batches.error());  // the ranks are no longer alike
  return batches;
}

}  // namespace trestle
