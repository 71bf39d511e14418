#include "perf/backend/nccl_backend.h"

#include <chrono>
#include <thread>

#include "perf/backend/nccl_calls.h"
#include "perf/driver/ending.h"
#include "perf/driver/pattern.h"
#include "perf/driver/types.h"

namespace trestle::perf {
namespace {

constexpr int kInProgress = 7;     // ncclInProgress
constexpr int kHostImmediate = 1;  // ncclScalarHostImmediate
constexpr int kSymmetric = 1;      // NCCL_WIN_COLL_SYMMETRIC
// The first versions with these features, as ncclGetVersion counts.
constexpr int kBfloat16AndAverage = 21000;
constexpr int kSmallFloats = 22400;
constexpr int kSmallFloatCapability = 90;  // of the GPU

bool is_small_float(trestleDataType_t type) {
  return type == trestleFloat8e4m3 || type == trestleFloat8e5m2;
}

}  // namespace

NcclBackend::NcclBackend(Ranks& ranks, const Options& options, const NcclLibrary& nccl,
                         std::vector<std::unique_ptr<Gpu>> gpus)
    : options_(options), nccl_(nccl), states_(ranks.states().size()) {
  double capability = 1e6;
  for (size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    state.rank = ranks.states()[i].rank;
    if (i < gpus.size()) state.gpu = std::move(gpus[i]);
    state.access = state.gpu ? state.gpu->make_access() : host_access();
    if (!state.gpu) continue;
    capability = std::min(capability, static_cast<double>(state.gpu->info().compute_capability));
    if (!options.null_stream) state.stream = state.gpu->make_stream();
    if (state.stream != nullptr) graphs_.add(state.gpu.get(), state.stream);
  }
  on_.emplace(states_.front().gpu.get());
  join(ranks);
  if (states_.front().gpu) compute_capability_ = static_cast<int>(ranks.combine(capability, Combine::kMin));
  const int nranks = ranks.layout().nranks();
  for (State& state : states_) {
    state.calls = std::make_unique<NcclCalls>(nccl_, state.comm, state.stream, state.rank, nranks);
  }
}

// Joining blocks until all ranks are there, so each rank of this thread needs a thread of its own for it.
void NcclBackend::join(Ranks& ranks) {
  NcclId id{};
  if (states_.front().rank == 0) check_nccl(nccl_, "GetUniqueId", nccl_.GetUniqueId(&id), nullptr);
  ranks.broadcast(&id, sizeof id);
  const int nranks = ranks.layout().nranks();
  const auto one = [&](State& state) {
    const OnGpu on(state.gpu.get());
    check_nccl(nccl_, "CommInitRank", nccl_.CommInitRank(&state.comm, nranks, id, state.rank), nullptr);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < states_.size(); ++i) others.emplace_back([&one, &state = states_[i]] { one(state); });
  one(states_.front());
  for (std::thread& other : others) other.join();
}

NcclBackend::~NcclBackend() {
  graphs_.drop();
  for (State& state : states_) {
    const OnGpu on(state.gpu.get());
    state.buffers = RankBuffers();
    if (state.mul_sum >= 0) {
      check_nccl(nccl_, "RedOpDestroy", nccl_.RedOpDestroy(state.mul_sum, state.comm), state.comm);
    }
    check_nccl(nccl_, "CommDestroy", nccl_.CommDestroy(state.comm), nullptr);
    if (state.stream != nullptr) state.gpu->destroy_stream(state.stream);
    state.access.reset();
  }
}

void NcclBackend::group_start() {
  check_nccl(nccl_, "GroupStart", nccl_.GroupStart(), nullptr);
}

void NcclBackend::group_end() {
  check_nccl(nccl_, "GroupEnd", nccl_.GroupEnd(), nullptr);
}

void NcclBackend::use_mul_sum(trestleDataType_t type) {
  for (State& state : states_) {
    if (state.mul_sum >= 0) {
      check_nccl(nccl_, "RedOpDestroy", nccl_.RedOpDestroy(state.mul_sum, state.comm), state.comm);
    }
    uint64_t scalar = 0;
    fill_mul_sum_scalar(type, state.rank, &scalar);
    check_nccl(nccl_, "RedOpCreatePreMulSum",
               nccl_.RedOpCreatePreMulSum(&state.mul_sum, &scalar, type, kHostImmediate, state.comm), state.comm);
  }
}

void NcclBackend::wait() {
  for (const State& state : states_) {
    if (state.gpu) wait_for(state);
  }
}

void NcclBackend::wait_for(const State& state) const {
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::seconds limit(options_.timeout_s);
  while (!state.gpu->is_idle(state.stream)) {
    int error = 0;
    check_nccl(nccl_, "CommGetAsyncError", nccl_.CommGetAsyncError(state.comm, &error), state.comm);
    if (error != 0 && error != kInProgress) check_nccl(nccl_, "communicator", error, state.comm);
    if (options_.timeout_s > 0 && std::chrono::steady_clock::now() - start > limit) {
      fail(kExitTimeout, "timeout: after " + std::to_string(options_.timeout_s) + " seconds NCCL's work of rank " +
                             std::to_string(state.rank) + " is not done");
    }
    std::this_thread::yield();
  }
}

bool NcclBackend::makes_windows() const {
  return !nccl_.takes_host_memory && nccl_.CommWindowRegister != nullptr && nccl_.CommWindowDeregister != nullptr;
}

Source NcclBackend::memory_for(State& state) const {
  const auto kind = static_cast<BufferKind>(options_.local_register);
  if (kind == BufferKind::kAllocated && nccl_.MemAlloc != nullptr && nccl_.MemFree != nullptr) {
    Gpu* const gpu = state.gpu.get();
    return {[this, gpu](size_t bytes) {
              const OnGpu on(gpu);
              void* memory = nullptr;
              check_nccl(nccl_, "MemAlloc", nccl_.MemAlloc(&memory, bytes), nullptr);
              return static_cast<char*>(memory);
            },
            [this, gpu](char* memory, size_t) {
              const OnGpu on(gpu);
              check_nccl(nccl_, "MemFree", nccl_.MemFree(memory), nullptr);
            }};
  }
  if (state.gpu) return state.gpu->memory();
  return kind == BufferKind::kOrdinary ? ordinary_memory() : shared_memory();
}

// Registered as -R says, as far as the library can.
Source NcclBackend::source_for(State& state) {
  const Source memory = memory_for(state);
  const bool windows = options_.local_register == 2 && makes_windows();
  const bool registers =
      options_.local_register == 1 && nccl_.CommRegister != nullptr && nccl_.CommDeregister != nullptr;
  if (!windows && !registers) return memory;
  return {[this, memory, windows, &state](size_t bytes) {
            char* const buffer = memory.allocate(bytes);
            const OnGpu on(state.gpu.get());
            void** const handle = &state.handles[buffer];
            if (windows) {
              check_nccl(nccl_, "CommWindowRegister",
                         nccl_.CommWindowRegister(state.comm, buffer, bytes, handle, kSymmetric), state.comm);
            } else {
              check_nccl(nccl_, "CommRegister", nccl_.CommRegister(state.comm, buffer, bytes, handle), state.comm);
            }
            return buffer;
          },
          [this, memory, windows, &state](char* buffer, size_t bytes) {
            const OnGpu on(state.gpu.get());
            void* const handle = state.handles[buffer];
            if (windows) {
              check_nccl(nccl_, "CommWindowDeregister", nccl_.CommWindowDeregister(state.comm, handle), state.comm);
            } else {
              check_nccl(nccl_, "CommDeregister", nccl_.CommDeregister(state.comm, handle), state.comm);
            }
            state.handles.erase(buffer);
            memory.free(buffer, bytes);
          }};
}

// Registering a window waits for all ranks, so each rank of this thread needs a thread of its own for it.
void NcclBackend::allocate(size_t bytes) {
  const auto one = [this, bytes](State& state) {
    state.buffers = make_rank_buffers(source_for(state), bytes, options_.unalign, *state.access);
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < states_.size(); ++i) others.emplace_back([&one, &state = states_[i]] { one(state); });
  one(states_.front());
  for (std::thread& other : others) other.join();
}

std::string NcclBackend::lacks(const Collective& collective, trestleDataType_t type, trestleRedOp_t op) const {
  const std::string version = "NCCL " + nccl_version_text(nccl_.version);
  const std::string row = std::string("no rows with ") + type_info(type).name + ": ";
  if (is_small_float(type) && nccl_.version < kSmallFloats) return row + version + " has no 8-bit floats, 2.24 has";
  const bool is_old_gpu = compute_capability_ > 0 && compute_capability_ < kSmallFloatCapability;
  if (is_small_float(type) && is_old_gpu && !nccl_.takes_host_memory) {
    return row + "NCCL's 8-bit floats need GPUs of compute capability 9.0";
  }
  if (type == trestleBfloat16 && nccl_.version < kBfloat16AndAverage) return row + version + " has none, 2.10 has";
  if (!collective.sweeps_ops) return "";
  if (op == trestleAvg && nccl_.version < kBfloat16AndAverage) {
    return "no rows with avg: " + version + " has none, 2.10 has";
  }
  if (op == kMulSum && (nccl_.RedOpCreatePreMulSum == nullptr || nccl_.RedOpDestroy == nullptr)) {
    return "no rows with mulsum: " + version + " has none, 2.11 has";
  }
  return "";
}

bool NcclBackend::has_result_in_place(const Collective& collective) const {
  return collective.verifies_in_place && collective.kind != trestleCollAllToAll;
}

std::vector<std::string> NcclBackend::remarks() const {
  std::vector<std::string> remarks;
  const std::string version = "NCCL " + nccl_version_text(nccl_.version);
  if (options_.local_register == 1 && (nccl_.CommRegister == nullptr || nccl_.CommDeregister == nullptr)) {
    remarks.push_back("-R 1: " + version + " has no CommRegister, so its buffers are not registered");
  }
  if (options_.local_register == 2 && (nccl_.MemAlloc == nullptr || nccl_.MemFree == nullptr)) {
    remarks.push_back("-R 2: " + version + " has no MemAlloc, so its buffers are ordinary memory");
  } else if (options_.local_register == 2 && !makes_windows()) {
    remarks.push_back("-R 2: " + std::string(nccl_.takes_host_memory ? "this library" : version) +
                      " has no windows, so its buffers are memory of MemAlloc without one");
  }
  return remarks;
}

}  // namespace trestle::perf
