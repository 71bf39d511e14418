#include "bindings/nccl/streams.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "bindings/nccl/answers.h"
#include "bindings/nccl/cuda_driver.h"
#include "bindings/nccl/groups.h"
#include "trestle/cuda.h"

namespace trestle::nccl {

namespace {

constexpr uintptr_t kLegacyStream = 1;     // cudaStreamLegacy, which is NULL by another name
constexpr uintptr_t kPerThreadStream = 2;  // cudaStreamPerThread

struct Record {
  Record* next = nullptr;  // set before the record is in the list
  // The owner of the stream: a communicator, the owner that it was given to at the communicator's end, nullptr, or one
  // of the two below. The other members belong to the owner.
  std::atomic<const void*> owner{nullptr};
  std::atomic<void*> handle{nullptr};
  std::atomic<long> thread{0};  // of the default stream of a thread; else 0
  std::atomic<trestleStream_t> stream{nullptr};
  std::atomic<bool> shared{false};  // calls of other communicators were on it, in groups
};
std::atomic<Record*> records{nullptr};

// Owners that are no communicators, by their addresses.
char busy;     // one thread is about to change the record
char retired;  // its communicator has ended, but calls of others are under way

bool is_default(const void* handle) {
  return handle == nullptr || reinterpret_cast<uintptr_t>(handle) == kPerThreadStream;
}

long thread_of(const void* handle) {
  return reinterpret_cast<uintptr_t>(handle) == kPerThreadStream ? ::syscall(SYS_gettid) : 0;
}

Record* record_of(trestleComm_t comm, void* handle, long thread) {
  for (Record* record = records.load(); record != nullptr; record = record->next) {
    if (record->owner.load() == comm && record->handle.load() == handle && record->thread.load() == thread) {
      return record;
    }
  }
  return nullptr;
}

bool claim(Record& record, const void* from) {
  return record.owner.compare_exchange_strong(from, &busy);
}

// A record that is this caller's to fill in. nullptr: there is no memory.
Record* unused_record() {
  for (Record* record = records.load(); record != nullptr; record = record->next) {
    if (claim(*record, nullptr)) return record;
  }
  auto* const made = new (std::nothrow) Record;
  if (made == nullptr) return nullptr;
  made->owner = &busy;
  made->next = records.load();
  while (!records.compare_exchange_weak(made->next, made)) continue;
  return made;
}

trestleResult_t wrap(int device, void* handle, trestleStream_t* stream) {
  if (!is_default(handle)) return trestleStreamWrapCuda(stream, handle);
  const OnDevice on(device);
  return trestleStreamWrapCuda(stream, handle);
}

Result add_stream(const char* function, trestleComm_t comm, CudaStream* wanted) {
  Record* const record = unused_record();
  if (record == nullptr) return refuse(Result::kSystemError, "%s: out of memory for a stream", function);
  trestleStream_t stream = nullptr;
  const trestleResult_t wrapped = wrap(wanted->device, wanted->handle, &stream);
  if (wrapped != trestleSuccess) {
    record->owner = nullptr;
    return refuse(code_of(wrapped), "%s: %s", function, trestleGetLastError(nullptr));
  }
  record->handle = wanted->handle;
  record->thread = thread_of(wanted->handle);
  record->stream = stream;
  record->shared = false;
  record->owner = comm;
  wanted->stream = stream;
  return Result::kSuccess;
}

// Ends the stream of a record that this caller has claimed. If calls of others are under way on it, retires the record.
void end_stream(Record& record) {
  const trestleStream_t stream = record.stream;
  if (record.shared && trestleStreamQuery(stream) == trestleInProgress) {
    record.owner = &retired;
    return;
  }
  record.owner = nullptr;
  (void)trestleStreamDestroy(stream);
}

void mark_shared(trestleStream_t stream) {
  for (Record* record = records.load(); record != nullptr; record = record->next) {
    if (record->stream.load() == stream) record->shared = true;
  }
}

}  // namespace

Result find_stream(const char* function, trestleComm_t comm, void* cuda_stream, CudaStream* found) {
  *found = {kNoDevice, nullptr, nullptr};
  if (comm == nullptr || trestleCommDevice(comm, &found->device) != trestleSuccess || found->device == kNoDevice) {
    found->device = kNoDevice;
    return Result::kSuccess;
  }
  found->handle = reinterpret_cast<uintptr_t>(cuda_stream) == kLegacyStream ? nullptr : cuda_stream;
  const IssuedCall* const before = call_of_group(found->device, found->handle);
  if (before != nullptr) {
    found->stream = before->cuda.stream;
    if (before->comm != comm) mark_shared(found->stream);
    return Result::kSuccess;
  }
  Record* const record = record_of(comm, found->handle, thread_of(found->handle));
  if (record == nullptr) return add_stream(function, comm, found);
  found->stream = record->stream;
  // A failure of another communicator's calls there was reported to that communicator. This query clears it here.
  if (record->shared) (void)trestleStreamQuery(found->stream);
  return Result::kSuccess;
}

void give_streams_of(trestleComm_t comm, const void* owner) {
  for (Record* record = records.load(); record != nullptr; record = record->next) {
    if (claim(*record, comm)) record->owner = owner;
  }
}

void end_streams_of(const void* owner) {
  for (Record* record = records.load(); record != nullptr; record = record->next) {
    if (claim(*record, owner) || claim(*record, &retired)) end_stream(*record);
  }
}

}  // namespace trestle::nccl
