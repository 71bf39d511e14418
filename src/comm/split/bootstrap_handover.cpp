#include "comm/split/bootstrap_handover.h"

#include <map>
#include <utility>

#include "base/check.h"
#include "base/fork.h"
#include "base/mutex.h"

namespace trestle {

namespace {

struct Handovers {
  Mutex mutex;
  std::map<JobId, std::vector<std::unique_ptr<Bootstrap>>> by_job TRESTLE_GUARDED_BY(mutex);

  static Handovers& of_process() {
    static constinit PerProcess<Handovers> handovers;
    return handovers.get();
  }
};

}  // namespace

BootstrapHandover::BootstrapHandover(const JobId& job, std::vector<std::unique_ptr<Bootstrap>> by_rank) : job_(job) {
  Handovers& all = Handovers::of_process();
  const MutexLock lock(all.mutex);
  all.by_job[job_] = std::move(by_rank);
}

BootstrapHandover::~BootstrapHandover() {
  std::vector<std::unique_ptr<Bootstrap>> left;  // destroyed without the lock
  Handovers& all = Handovers::of_process();
  const MutexLock lock(all.mutex);
  const auto found = all.by_job.find(job_);
  CHECK(found != all.by_job.end(), "two parts of splits have the same job");
  left.swap(found->second);
  all.by_job.erase(found);
}

std::unique_ptr<Bootstrap> BootstrapHandover::take(const JobId& job, int32_t rank) {
  Handovers& all = Handovers::of_process();
  const MutexLock lock(all.mutex);
  const auto found = all.by_job.find(job);
  return found == all.by_job.end() ? nullptr : std::move(found->second[static_cast<size_t>(rank)]);
}

}  // namespace trestle
