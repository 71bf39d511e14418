#include "conformance/faults/api_fault_job.h"

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "conformance/faults/fault_points.h"

namespace api {

namespace {

constexpr size_t kMost = 100'000;  // elements of the largest block
constexpr trestleDataType_t kType = trestleFloat32;

int add(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t, void*) {
  auto* const out = static_cast<float*>(dst);
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int s = 0; s < k; ++s) sum += static_cast<const float*>(sources[s])[i];
    out[i] = sum;
  }
  return 0;
}

class Job {
 public:
  Job(int rank, trestleComm_t comm) : rank_(rank), comm_(comm) {}

  JobResult run() {
    for (const size_t count : {kMost, size_t{10}}) {
      if (working()) collectives(count);
      if (working()) vectors(count);
      if (working()) messages(count);
      if (working()) requests(count);
      if (working()) operators(count);
    }
    if (working()) streams();
    if (working()) memory();
    if (working()) queries();
    if (working()) split();
    clean();
    return result_;
  }

 private:
  using Calls = std::function<trestleResult_t()>;
  bool working() const { return result_.result == trestleSuccess; }

  // Makes a call, once more if it was refused for want of a resource.
  bool make(const char* name, const Calls& call, bool again = true) {
    if (!working()) return false;
    trestleResult_t result = faults::counted(call);
    if (result == trestleSystemError && again) result = faults::counted(call);
    if (result != trestleSuccess) result_ = {result, name, trestleGetLastError(comm_)};
    return working();
  }
  // A call that fills the first `received` elements of out_ with `value`.
  void check(const char* name, size_t received, float value, const Calls& call) {
    out_.assign(2 * kMost, -1.0f);
    if (!make(name, call) || !make("CommSynchronize", [this] { return trestleCommSynchronize(comm_); })) return;
    for (size_t i = 0; i < out_.size() && working(); ++i) {
      if (out_[i] != (i < received ? value : -1.0f))
        result_ = {trestleInternalError, name, "element " + std::to_string(i) + " is " + std::to_string(out_[i])};
    }
  }
  // The calls of a group; a group that was refused is made again as a whole.
  static trestleResult_t group(const std::array<Calls, 2>& calls) {
    trestleResult_t first = trestleGroupStart();
    if (first != trestleSuccess) return first;
    for (const Calls& call : calls) {
      const trestleResult_t result = call();
      if (first == trestleSuccess) first = result;
    }
    const trestleResult_t ended = trestleGroupEnd();
    return first != trestleSuccess ? first : ended;
  }

  void collectives(size_t n) {
    float* const in = in_.data();
    float* const out = out_.data();
    const trestleComm_t c = comm_;
    const size_t at_root = rank_ == 0 ? 1 : 0;
    check("AllReduce", n, 2, [=] { return trestleAllReduce(in, out, n, kType, trestleSum, c, nullptr); });
    check("ReduceScatter", n, 2, [=] { return trestleReduceScatter(in, out, n, kType, trestleSum, c, nullptr); });
    check("AllGather", 2 * n, 1, [=] { return trestleAllGather(in, out, n, kType, c, nullptr); });
    check("Broadcast", n, 1, [=] { return trestleBroadcast(in, out, n, kType, 0, c, nullptr); });
    check("Reduce", n * at_root, 2, [=] { return trestleReduce(in, out, n, kType, trestleSum, 0, c, nullptr); });
    check("AllToAll", 2 * n, 1, [=] { return trestleAllToAll(in, out, n, kType, c, nullptr); });
    check("Gather", 2 * n * at_root, 1, [=] { return trestleGather(in, out, n, kType, 0, c, nullptr); });
    check("Scatter", n, 1, [=] { return trestleScatter(in, out, n, kType, 0, c, nullptr); });
    make("Barrier", [=] { return trestleBarrier(c, nullptr); });
  }

  void vectors(size_t n) {
    float* const in = in_.data();
    float* const out = out_.data();
    const trestleComm_t c = comm_;
    const size_t counts[2] = {n, n};
    const size_t* const k = counts;
    const size_t at_root = rank_ == 0 ? 1 : 0;
    check("AllGatherV", 2 * n, 1, [=] { return trestleAllGatherV(in, n, out, k, nullptr, kType, c, nullptr); });
    check("ReduceScatterV", n, 2, [=] { return trestleReduceScatterV(in, out, k, kType, trestleSum, c, nullptr); });
    check("AllToAllV", 2 * n, 1, [=] { return trestleAllToAllV(in, k, nullptr, out, k, nullptr, kType, c, nullptr); });
    check("GatherV", 2 * n * at_root, 1, [=] { return trestleGatherV(in, n, out, k, nullptr, kType, 0, c, nullptr); });
    check("ScatterV", n, 1, [=] { return trestleScatterV(in, k, nullptr, out, n, kType, 0, c, nullptr); });
  }

  void messages(size_t n) {
    const Calls send = [this, n] { return trestleSend(in_.data(), n, kType, 1 - rank_, comm_, nullptr); };
    const Calls receive = [this, n] { return trestleRecv(out_.data(), n, kType, 1 - rank_, comm_, nullptr); };
    const std::array<Calls, 2> calls{send, receive};
    check("Send and Recv", n, 1, [&] { return group(calls); });
  }

  void requests(size_t n) {
    float* const in = in_.data();
    float* const out = out_.data();
    trestleRequest_t request = nullptr;
    const auto free = [&] {
      make("RequestWait", [&] { return trestleRequestWait(request); });
      make("RequestFree", [&] { return trestleRequestFree(request); });
      if (!working()) trestleRequestFree(request);
    };
    const auto use = [&](const char* name, size_t received, float value, const Calls& init) {
      if (!make(name, init)) return;
      check(name, received, value, [&] { return trestleRequestStart(request); });
      free();
    };
    use("AllReduceInit", n, 2,
        [&] { return trestleAllReduceInit(in, out, n, kType, trestleSum, comm_, nullptr, &request); });
    use("AllGatherInit", 2 * n, 1, [&] { return trestleAllGatherInit(in, out, n, kType, comm_, nullptr, &request); });
    if (!make("AllReduceStart",
              [&] { return trestleAllReduceStart(in, out, n, kType, trestleSum, comm_, nullptr, &request); }))
      return;
    make("AllReduceFinish", [&] { return trestleAllReduceFinish(request, nullptr); });
    free();
  }

  void operators(size_t n) {
    trestleRedOp_t op = trestleSum;
    const float half = 0.5f;
    const auto use = [&](const char* name, float value, const Calls& create) {
      if (!make(name, create)) return;
      check(name, n, value, [&] { return trestleAllReduce(in_.data(), out_.data(), n, kType, op, comm_, nullptr); });
      make("RedOpDestroy", [&] { return trestleRedOpDestroy(op, comm_); });
    };
    use("RedOpCreate", 2, [&] { return trestleRedOpCreate(&op, add, nullptr, 1, comm_); });
    use("RedOpCreatePreMulSum", 1, [&] {
      return trestleRedOpCreatePreMulSum(&op, const_cast<float*>(&half), kType, trestleScalarHostImmediate, comm_);
    });
  }

  void streams() {
    trestleStream_t streams[2] = {nullptr, nullptr};
    trestleEvent_t event = nullptr;
    for (trestleStream_t& stream : streams) make("StreamCreate", [&] { return trestleStreamCreate(&stream); });
    make("EventCreate", [&] { return trestleEventCreate(&event); });
    check("AllReduce on streams", 10, 2,
          [&] { return trestleAllReduce(in_.data(), out_.data(), 10, kType, trestleSum, comm_, streams[0]); });
    make("EventRecord", [&] { return trestleEventRecord(event, streams[0]); });
    make("StreamWaitEvent", [&] { return trestleStreamWaitEvent(streams[1], event); });
    std::atomic<bool> notified{false};
    make("EventNotify", [&] {
      return trestleEventNotify(
          event,
          [](void* flag, trestleResult_t) {
            auto* const it = static_cast<std::atomic<bool>*>(flag);
            it->store(true);
            it->notify_one();
          },
          &notified);
    });
    if (working()) notified.wait(false);
    const std::array<Calls, 2> calls{
        [&] { return trestleAllReduce(in_.data(), out_.data(), 5, kType, trestleSum, comm_, streams[0]); },
        [&] { return trestleAllReduce(in_.data(), out_.data() + 5, 5, kType, trestleSum, comm_, streams[1]); }};
    check("a group", 10, 2, [&] { return group(calls); });
    make("EventSynchronize", [&] { return trestleEventSynchronize(event); });
    if (event != nullptr) trestleEventDestroy(event);
    for (const trestleStream_t stream : streams) {
      make("StreamSynchronize", [&] { return trestleStreamSynchronize(stream); });
      if (stream != nullptr) trestleStreamDestroy(stream);
    }
  }

  void memory() {
    void* allocated = nullptr;
    if (!make("MemAlloc", [&] { return trestleMemAlloc(&allocated, kMost * sizeof(float)); })) return;
    auto* const in = static_cast<float*>(allocated);
    std::fill(in, in + kMost, 1.0f);
    check("AllReduce of allocated memory", kMost, 2,
          [&] { return trestleAllReduce(in, out_.data(), kMost, kType, trestleSum, comm_, nullptr); });
    make("Barrier", [&] { return trestleBarrier(comm_, nullptr); });
    make("CommSynchronize", [&] { return trestleCommSynchronize(comm_); });
    make("MemFree", [&] { return trestleMemFree(allocated); });
    if (!working()) trestleMemFree(allocated);  // the communicator has failed: nothing uses it
  }

  void queries() {
    trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
    double microseconds = 0;
    trestleRange_t ranges[16];
    int most = 16;
    make("CommGetStats", [&] { return trestleCommGetStats(comm_, &stats); });
    make("PredictTime", [&] { return trestlePredictTime(comm_, trestleCollAllReduce, 1000, kType, &microseconds); });
    make("ShardRanges", [&] { return trestleShardRanges(comm_, rank_, 1000, kType, ranges, &most); });
    trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
    config.algo = "ring";
    if (!make("CallConfigPush", [&] { return trestleCallConfigPush(&config); })) return;
    check("AllReduce by ring", kMost, 2,
          [&] { return trestleAllReduce(in_.data(), out_.data(), kMost, kType, trestleSum, comm_, nullptr); });
    trestleCallConfigPop();
  }

  // Collective: it fails on all ranks, so neither can try again alone.
  void split() {
    if (!make(
            "CommSplit", [&] { return trestleCommSplit(comm_, 0, -rank_, &part_, nullptr); }, false))
      return;
    out_.assign(2 * kMost, -1.0f);
    make("AllReduce of a part",
         [&] { return trestleAllReduce(in_.data(), out_.data(), kMost, kType, trestleSum, part_, nullptr); });
    make(
        "CommFinalize", [&] { return trestleCommFinalize(part_); }, false);
    if (working() && out_[kMost - 1] != 2) result_ = {trestleInternalError, "AllReduce of a part", "wrong data"};
    if (result_.sentence.empty() && !working()) result_.sentence = trestleGetLastError(part_);
  }

  // The other rank must not wait for what this one does not do any more.
  void clean() {
    if (part_ == nullptr) return;
    if (working()) {
      make(
          "CommDestroy", [&] { return trestleCommDestroy(part_); }, false);
    } else {
      trestleCommAbort(part_);
    }
  }

  const int rank_;
  const trestleComm_t comm_;
  trestleComm_t part_ = nullptr;
  std::vector<float> in_ = std::vector<float>(2 * kMost, 1.0f);
  std::vector<float> out_ = std::vector<float>(2 * kMost);
  JobResult result_;
};

}  // namespace

JobResult run_fault_job(int rank, trestleComm_t comm) {
  return Job(rank, comm).run();
}

}  // namespace api
