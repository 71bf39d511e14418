#include "bindings/nccl/groups.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "bindings/nccl/answers.h"

namespace trestle::nccl {

namespace {

// Memory of malloc, because a call of C may not throw for lack of it, and no destructor: destructors of static objects
// may still make calls when those of the thread have run.
class OpenGroup {
 public:
  static OpenGroup& of_this_thread();

  bool open() const { return depth_ > 0; }
  bool outermost() const { return depth_ == 1; }
  void enter() {
    if (depth_++ == 0) process_ = getpid();
  }
  void leave();
  bool add(const IssuedCall& call);
  void forget(trestleComm_t comm);
  const IssuedCall* on_stream(int device, const void* handle) const;
  void refuse(Result code);
  bool refused_here() const { return refusal_ != Result::kSuccess; }
  Result repeat_refusal() const { return refuse_again(refusal_, sentence_); }
  void fail() { failed_ = open(); }
  bool failed() const { return failed_; }
  Result wait() const;
  Result predict(double& microseconds) const;

 private:
  int depth_ = 0;
  pid_t process_ = 0;
  IssuedCall* calls_ = nullptr;
  size_t count_ = 0;
  size_t room_ = 0;
  bool failed_ = false;  // libtrestle.so has refused a call of it
  Result refusal_ = Result::kSuccess;
  char sentence_[kSentenceBytes] = {};
};

OpenGroup& OpenGroup::of_this_thread() {
  static_assert(std::is_trivially_destructible_v<OpenGroup>);
  thread_local OpenGroup group;
  // A group that was open at a fork belongs to the parent.
  if (group.open() && group.process_ != getpid()) {
    group.depth_ = 1;
    group.leave();
  }
  return group;
}

void OpenGroup::leave() {
  if (--depth_ > 0) return;
  end_streams_of(this);
  std::free(calls_);
  calls_ = nullptr;
  count_ = room_ = 0;
  failed_ = false;
  refusal_ = Result::kSuccess;
}

bool OpenGroup::add(const IssuedCall& call) {
  if (count_ == room_) {
    const size_t room = room_ == 0 ? 64 : 2 * room_;
    auto* calls = static_cast<IssuedCall*>(std::realloc(calls_, room * sizeof(IssuedCall)));
    if (calls == nullptr) return false;
    calls_ = calls;
    room_ = room;
  }
  calls_[count_++] = call;
  return true;
}

void OpenGroup::forget(trestleComm_t comm) {
  for (size_t i = 0; i < count_; ++i) {
    if (calls_[i].comm == comm) calls_[i].comm = nullptr;
  }
}

const IssuedCall* OpenGroup::on_stream(int device, const void* handle) const {
  for (size_t i = count_; i > 0; --i) {
    const IssuedCall& call = calls_[i - 1];
    const bool same = call.cuda.device == device && call.cuda.handle == handle;
    if (same && call.cuda.stream != nullptr) return &call;
  }
  return nullptr;
}

void OpenGroup::refuse(Result code) {
  if (!open() || refused_here()) return;
  refusal_ = code;
  std::snprintf(sentence_, sizeof sentence_, "%s", last_refusal());
  // A call that libtrestle.so refuses makes it drop the group.
  (void)trestleBarrier(nullptr, nullptr);
}

// Waits for all of them, also after a failure: the buffers of the others are in use.
Result OpenGroup::wait() const {
  Result first = Result::kSuccess;
  trestleComm_t last = nullptr;
  for (size_t i = 0; i < count_; ++i) {
    const IssuedCall& call = calls_[i];
    if (call.comm == nullptr || call.comm == last || call.cuda.stream != nullptr) continue;
    last = call.comm;
    const Result waited = answer(trestleCommSynchronize(last));
    if (first == Result::kSuccess) first = waited;
  }
  return first;
}

Result OpenGroup::predict(double& microseconds) const {
  microseconds = 0;
  for (size_t i = 0; i < count_; ++i) {
    const IssuedCall& call = calls_[i];
    double one = 0;
    if (call.comm == nullptr) continue;
    const Result predicted = answer(trestlePredictTime(call.comm, call.collective, call.count, call.type, &one));
    if (predicted != Result::kSuccess) return predicted;
    microseconds += one;
  }
  return Result::kSuccess;
}

}  // namespace

Result finish(const IssuedCall& call, trestleResult_t issued) {
  OpenGroup& group = OpenGroup::of_this_thread();
  if (issued != trestleSuccess) {
    group.fail();
    return answer(issued);
  }
  if (!group.open()) return answer(call.cuda.stream != nullptr ? trestleSuccess : trestleCommSynchronize(call.comm));
  if (group.add(call)) return Result::kSuccess;
  return refuse(Result::kSystemError, "out of memory for the calls of a group");
}

void forget_calls_on(trestleComm_t comm) {
  OpenGroup::of_this_thread().forget(comm);
}

void take_streams_of(trestleComm_t comm) {
  give_streams_of(comm, &OpenGroup::of_this_thread());
}

void end_taken_streams() {
  const OpenGroup& group = OpenGroup::of_this_thread();
  if (!group.open()) end_streams_of(&group);
}

const IssuedCall* call_of_group(int device, const void* handle) {
  const OpenGroup& group = OpenGroup::of_this_thread();
  return group.open() ? group.on_stream(device, handle) : nullptr;
}

void refuse_group(Result code) {
  OpenGroup::of_this_thread().refuse(code);
}

NCCL_API(Result, GroupStart, ()) {
  const Result started = answer(trestleGroupStart());
  if (started == Result::kSuccess) OpenGroup::of_this_thread().enter();
  return started;
}

NCCL_API(Result, GroupEnd, ()) {
  OpenGroup& group = OpenGroup::of_this_thread();
  const trestleResult_t ended = trestleGroupEnd();
  if (!group.outermost()) {
    if (group.open()) group.leave();
    return answer(ended);
  }
  Result result = answer(ended);
  if (group.refused_here()) {
    result = group.repeat_refusal();
  } else if (ended == trestleSuccess || ended == trestleInProgress) {
    const Result waited = group.wait();
    if (waited != Result::kSuccess) result = waited;
  }
  group.leave();
  return result;
}

namespace {

// Ends the thread's group without doing anything of it.
Result drop_group(OpenGroup& group) {
  const bool failed = group.failed() || group.refused_here();
  (void)trestleBarrier(nullptr, nullptr);
  const trestleResult_t ended = trestleGroupEnd();
  Result result = failed ? answer(ended) : Result::kSuccess;
  if (group.refused_here()) result = group.repeat_refusal();
  if (!failed) (void)refuse_again(Result::kSuccess, "");  // the barrier's sentence is not for the caller
  group.leave();
  return result;
}

}  // namespace

// The estimate is the sum of the times that trestlePredictTime predicts for the group's calls.
NCCL_API(Result, GroupSimulateEnd, (SimInfo * info)) {
  constexpr size_t kFirstSize = offsetof(SimInfo, estimatedTime) + sizeof(float);
  OpenGroup& group = OpenGroup::of_this_thread();
  if (!group.open()) return answer(trestleGroupEnd());
  if (!group.outermost()) {
    // There is no estimate of a part. The level ends, so the caller's next end is of the group around it.
    group.leave();
    return answer(trestleGroupEnd());
  }
  double microseconds = 0;
  char why[kSentenceBytes];
  const Result predicted = group.predict(microseconds);
  std::snprintf(why, sizeof why, "%s", trestleGetLastError(nullptr));
  const Result dropped = drop_group(group);
  if (dropped != Result::kSuccess) return dropped;
  if (predicted != Result::kSuccess) return refuse_again(predicted, why);
  if (info == nullptr) return refuse(Result::kInvalidArgument, "GroupSimulateEnd: simInfo is NULL");
  if (info->magic != kSimInfoMagic || info->size < kFirstSize) {
    return refuse(Result::kInvalidArgument, "GroupSimulateEnd: start simInfo from NCCL_SIM_INFO_INITIALIZER");
  }
  info->estimatedTime = static_cast<float>(microseconds);
  return Result::kSuccess;
}

}  // namespace trestle::nccl
