// What issuing a call costs its caller: allocations and system calls, counted. Neither may depend on the call's size.
//
// The function below replaces that of the whole program.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/run/progress.h"
#include "sched/select/select.h"
#include "support/allocations.h"
#include "unit/engine/streams.h"
#include "unit/engine/unattended.h"

namespace {
thread_local int writes = 0;  // of this thread
// This thread's writes are counted, and nobody gets them.
thread_local bool holds_writes = false;
}  // namespace

extern "C" ssize_t write(int fd, const void* data, size_t bytes) {
  ++writes;
  if (holds_writes) return static_cast<ssize_t>(bytes);
  return syscall(SYS_write, fd, data, bytes);
}

namespace trestle {
namespace {

// Broadcasts from rank 1 over the gate, which never touches their data.
class Issue : public Streams {
 protected:
  std::shared_ptr<const Prepared> broadcast(uint64_t bytes, uint32_t chunks) {
    PrepareRequest request;
    request.collective = Collective::kBroadcast;
    request.count = bytes / sizeof(float);
    request.root = 1;
    SelectionConfig selection;
    selection.chunks = selection.in_flight = chunks;
    selection.algo = "direct";
    PrepareContext context;
    context.topology = &topology_;
    context.segment_bytes = [](const void*, const std::vector<int32_t>&) { return uint64_t{256} << 10; };
    const auto schedule = select_schedule({request.collective, bytes, sizeof(float), 1}, topology_, selection);
    EXPECT_TRUE(schedule.ok());
    EXPECT_EQ(schedule.value().chunks.size(), chunks);
    return prepare(request, schedule.value(), context).value();
  }
  void issue(const std::shared_ptr<const Prepared>& prepared) {
    Operation* const call = engine_->acquire(prepared);
    call->bind({}, private_region(data_, prepared->count * sizeof(float)), ++number_, 0);
    engine_->count_pending(1);
    a_->enqueue({call});
    engine_->issued();
    Progress::call_issued(*engine_);
  }
  int allocations_of_issue(const std::shared_ptr<const Prepared>& prepared) {
    const int before = allocations::made();
    issue(prepared);
    return allocations::made() - before;
  }
  void finish() {
    while (engine_->pending() != 0) {
      drive();
      gate_->arrive_all();
    }
  }

  uint64_t number_ = 0;
};

TEST_F(Issue, AllocatesNothingForAnySizeOnceTheCallIsKnown) {
  const std::shared_ptr<const Prepared> calls[] = {broadcast(8 << 10, 1), broadcast(uint64_t{64} << 20, 64)};
  for (const auto& call : calls) {
    SCOPED_TRACE(call->count);
    issue(call);
    issue(call);
    finish();
    EXPECT_EQ(allocations_of_issue(call), 0) << "at the head of its stream";
    drive();
    EXPECT_EQ(allocations_of_issue(call), 0) << "behind another one";
    finish();
  }
}

// More of them at once than ever before: the pool has none.
TEST_F(Issue, MakesAnOperationOfManyChunksWithAsManyAllocations) {
  const auto small = broadcast(8 << 10, 1);
  const auto large = broadcast(uint64_t{64} << 20, 64);
  std::vector<Operation*> lent;
  const auto allocations_for = [&](const std::shared_ptr<const Prepared>& prepared) {
    const int before = allocations::made();
    lent.push_back(engine_->acquire(prepared));
    return allocations::made() - before;
  };
  lent.reserve(16);
  while (lent.size() < 10) allocations_for(small);  // the engine's own lists are long enough then
  allocations_for(large);                           // and has a row of its own
  const int of_small = allocations_for(small);
  EXPECT_GT(of_small, 0);
  EXPECT_EQ(allocations_for(large), of_small);
  for (Operation* operation : lent) engine_->give_back(operation);
}

// A helper at the engine wakes when an operation becomes active. It need not be told of one that is queued.
TEST(IssueOfACall, MakesNoSystemCallWhileAThreadSleepsAtTheEngine) {
  Unattended work;
  Progress progress(true);
  ASSERT_TRUE(progress.add(work.engine).ok());
  work.engine->count_pending(1);
  for (int begun = 0; begun < 100;) {
    const Engine::Sleep sleep = work.engine->begin_sleep();
    if (sleep.state != Engine::Sleep::State::kBegun) {
      sched_yield();
      continue;
    }
    ++begun;
    const int before = writes;
    Progress::call_issued(*work.engine);
    EXPECT_EQ(writes, before);
    work.engine->end_sleep(sleep);
  }
}

// The helper takes microseconds to wake. Here it never does, because the bell is held back. It does not sleep at the
// engine, which has no work yet.
TEST(IssueOfACall, RingsAHelperThatSleepsForLongOnlyOnce) {
  Unattended work;
  work.engine->count_pending(static_cast<size_t>(-1));
  Progress progress(true);
  ASSERT_TRUE(progress.add(work.engine).ok());
  const int before = writes;
  holds_writes = true;
  while (writes == before) {
    Progress::call_issued(*work.engine);
    sched_yield();
  }
  for (int i = 0; i < 100; ++i) Progress::call_issued(*work.engine);
  holds_writes = false;
  EXPECT_EQ(writes, before + 1);
}

}  // namespace
}  // namespace trestle
