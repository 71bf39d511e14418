// The C API's handles: the objects that a trestleComm_t and the other handle types point to, and how a destroyed handle
// is recognised.
//
// Handles are never returned to the allocator. A destroyed one goes to its pool and is reused later, so reading a dead
// handle is always defined. A forked child has a pool of its own; inherited handles stay the parent's, and every call
// refuses them. Any thread. Used by src/api only.
#pragma once

#include <atomic>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "api/user_code.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "comm/communicator/communicator.h"
#include "comm/communicator/group.h"
#include "comm/setup/background.h"
#include "trestle/trestle.h"

namespace trestle {

inline constexpr uint32_t kAlive = 0x7e571e02;
inline constexpr uint32_t kDead = 0xdead7e57;
inline constexpr uint32_t kBusy = 0x7e571e03;  // a communicator that another thread creates or finalizes
// What a Use reports for a handle of the process that forked this one.
inline constexpr uint32_t kInherited = 0x7e571e04;

template <class T>
struct Handle {
  const uint32_t generation = process_generation();
  std::atomic<uint32_t> state{kDead};
  std::atomic<uint32_t> users{0};  // calls that use it now
  std::shared_ptr<T> object;
  Handle* buried_next = nullptr;  // list of the handle's pool
};

// A request: an all-reduce in two halves, or one whole collective that can be started again and again.
struct Request {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<Stream> stream;
  Call start, finish;  // a whole collective has only the first
  bool persistent = false;
  bool whole = false;
  Mutex mutex;
  // kGrouped: a half waits for the end of its group.
  enum class State { kInactive, kStarted, kFinishing, kGrouped } state TRESTLE_GUARDED_BY(mutex) = State::kInactive;
  std::shared_ptr<Recording> done TRESTLE_GUARDED_BY(mutex);  // the record behind what was started last
  std::shared_ptr<Stream> running TRESTLE_GUARDED_BY(mutex);  // the stream of that record
  std::unique_ptr<const HeldCall> held_start, held_finish;    // of a persistent one
};

template <class H>
class HandlePool {
 public:
  H* make() {
    const MutexLock lock(mutex_);
    if (oldest_ != nullptr) {
      H* handle = std::exchange(oldest_, static_cast<H*>(oldest_->buried_next));
      if (oldest_ == nullptr) newest_ = nullptr;
      return handle;
    }
    all_.push_back(std::make_unique<H>());
    return all_.back().get();
  }
  // A list through the handles themselves: adding one needs no memory and no time.
  void bury(H* handle) noexcept {
    const MutexLock lock(mutex_);
    handle->buried_next = nullptr;
    if (newest_ != nullptr) {
      newest_->buried_next = handle;
    } else {
      oldest_ = handle;
    }
    newest_ = handle;
  }
  static HandlePool& process() {
    static constinit PerProcess<HandlePool> pool;
    return pool.get();
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<H>> all_ TRESTLE_GUARDED_BY(mutex_);
  // The dead handles, oldest first. They are reused late, so that most uses of a destroyed handle are recognised.
  H* oldest_ TRESTLE_GUARDED_BY(mutex_) = nullptr;
  H* newest_ TRESTLE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace trestle

struct trestleComm : trestle::Handle<trestle::Communicator> {
  trestle::Mutex mutex;
  // Its own creation or finalization: under way, or the last one that ended.
  std::shared_ptr<trestle::Background> own TRESTLE_GUARDED_BY(mutex);
  // Splits that have no handle because this rank takes part without a colour.
  std::vector<std::shared_ptr<trestle::Background>> splits TRESTLE_GUARDED_BY(mutex);
};
struct trestleStream : trestle::Handle<trestle::Stream> {};
struct trestleEvent : trestle::Handle<trestle::Event> {};
struct trestleRequest : trestle::Handle<trestle::Request> {};

namespace trestle {

// Marks a handle as in use for the duration of a call.
template <class H>
class Use {
 public:
  explicit Use(H* handle) : handle_(handle) {
    if (handle_ == nullptr) return;
    // No load overtakes the atomic addition. Here the misses of the handle and of the process's generation overlap.
    const bool own = handle_->generation == process_generation();
    handle_->users.fetch_add(1, std::memory_order_acq_rel);
    state_ = own ? handle_->state.load(std::memory_order_acquire) : kInherited;
  }
  ~Use() {
    if (handle_ != nullptr) handle_->users.fetch_sub(1, std::memory_order_acq_rel);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  bool alive() const { return state_ == kAlive; }
  bool busy() const { return state_ == kBusy; }
  bool inherited() const { return state_ == kInherited; }
  H* handle() const { return handle_; }
  auto& object() { return handle_->object; }

 private:
  H* handle_;
  uint32_t state_ = kDead;
};

template <class H, class T>
H* bring_to_life(H* handle, std::shared_ptr<T> object) noexcept {
  handle->object = std::move(object);
  handle->state.store(kAlive, std::memory_order_release);
  return handle;
}

template <class H, class T>
H* make_handle(std::shared_ptr<T> object) {
  return bring_to_life(HandlePool<H>::process().make(), std::move(object));
}

// A handle that is dead until its object is made. After that nothing can fail any more. Unused, it goes back to its
// pool.
template <class H>
class ReservedHandle {
 public:
  ReservedHandle() : handle_(HandlePool<H>::process().make()) {}
  ~ReservedHandle() {
    if (handle_ != nullptr) HandlePool<H>::process().bury(handle_);
  }
  ReservedHandle(const ReservedHandle&) = delete;
  ReservedHandle& operator=(const ReservedHandle&) = delete;
  template <class T>
  H* take(std::shared_ptr<T> object) noexcept {
    return bring_to_life(std::exchange(handle_, nullptr), std::move(object));
  }

 private:
  H* handle_;
};

// Ends the handle for new calls, also a busy one. True for the one caller that ended it.
template <class H>
bool end_handle(H* handle) {
  return handle->state.exchange(kDead, std::memory_order_acq_rel) != kDead;
}

// ---- errors at the boundary

// Both store a message for GetLastError of this thread.
trestleResult_t report(Error error) noexcept;
trestleResult_t report_constant(Code code, const char* sentence) noexcept;

// The only place that catches exceptions. Used directly for queries that are allowed inside a user function, too.
// without_memory: called where std::bad_alloc has left the body. A call that other ranks take part in fails its
// communicator then: they may know of it.
template <class F, class W>
trestleResult_t caught(F&& body, W&& without_memory) noexcept {
  try {
    Status status = body();
    if (!status.ok() && status.error().code == Code::kInProgress) return trestleInProgress;  // not an error
    return status.ok() ? trestleSuccess : report(std::move(status).error());
  } catch (const std::bad_alloc&) {
    without_memory();
    return report_constant(Code::kSystemError, "out of memory");
  } catch (const std::system_error&) {
    return report_constant(Code::kSystemError, "a system call of the standard library failed");
  } catch (...) {
    return report_constant(Code::kInternalError, "unexpected exception");
  }
}

template <class F>
trestleResult_t caught(F&& body) noexcept {
  return caught(std::forward<F>(body), [] {});
}

template <class F, class W>
trestleResult_t guarded(F&& body, W&& without_memory) noexcept {
  return called_from_user_code() ? refuse_in_user_code()
                                 : caught(std::forward<F>(body), std::forward<W>(without_memory));
}
template <class F>
trestleResult_t guarded(F&& body) noexcept {
  return guarded(std::forward<F>(body), [] {});
}

inline void fail_without_memory(trestleComm_t comm) {
  Use use(comm);
  if (use.alive()) use.object()->engine().fail_without_memory();
}

// The same for calls that an open group collects: after an error the group's end refuses the whole group.
template <class F, class W>
trestleResult_t guarded_in_group(F&& body, W&& without_memory) noexcept {
  if (called_from_user_code()) return refuse_in_user_code();  // the group does not belong to the user function
  const trestleResult_t result = caught(
      [&]() -> Status {
        Status status = body();
        if (!status.ok() && status.error().code != Code::kInProgress) Group::of_this_thread().remember(status.error());
        return status;
      },
      without_memory);
  if (result != trestleSuccess && result != trestleInProgress) Group::of_this_thread().spoil(static_cast<Code>(result));
  return result;
}
template <class F>
trestleResult_t guarded_in_group(F&& body) noexcept {
  return guarded_in_group(std::forward<F>(body), [] {});
}

inline Error invalid_argument(std::string sentence) {
  return {Code::kInvalidArgument, std::move(sentence)};
}
inline Error invalid_usage(std::string sentence) {
  return {Code::kInvalidUsage, std::move(sentence)};
}

// Why a handle that is not alive takes no call: it was `ended` ("destroyed"), or belongs to the process that forked
// this one.
Error dead_handle(bool inherited, const char* function, const char* what, const char* ended);
template <class H>
Error dead_handle(const Use<H>& use, const char* function, const char* what, const char* ended = "destroyed") {
  return dead_handle(use.inherited(), function, what, ended);
}

// Reads the caller's config struct.
Result<SettingsOverride> read_config(const trestleConfig_t* config);
// Applies the calling thread's trestleCallConfigPush scopes to the call.
void apply_call_config(Call& call);
// Checks that the communicator takes calls: not destroyed, not in progress, and its creation did not fail.
Status check_ready(const Use<trestleComm>& use, const char* function);
// Calls body(Communicator&) with a communicator that takes calls, or has failed.
template <class F>
trestleResult_t with_comm(trestleComm_t comm, const char* function, F&& body) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
    Use use(comm);
    TRY(check_ready(use, function));
    return body(*use.object());
  });
}

// ---- functions that return trestleInProgress (background.cpp)

using Creation = std::function<Result<std::shared_ptr<Communicator>>(std::atomic<bool>& stop)>;
// Creates a communicator for *comm: now, at the group's end, or (not `blocking`) on another thread: kInProgress.
// `take_number`, if given, is called when nothing can refuse the creation any more, before it begins. In a group the
// caller must arrange for that.
Status create_for(trestleComm_t* comm, Creation create, bool blocking, const std::function<void()>& take_number = {});
// A split that gives this rank no communicator, on another thread: kInProgress. The caller holds a Use of `parent`.
Status split_for_others(trestleComm_t parent, Creation split, const std::function<void()>& take_number);
// Finalizes on another thread: kInProgress. kSuccess: the handle no longer holds that communicator, so the caller must
// wait for it itself.
Status begin_finalization(trestleComm_t comm, const std::shared_ptr<Communicator>& communicator);
// kSuccess, kInProgress, or why the creation or finalization failed. A failure of a split without a handle is reported
// once.
Status background_status(const Use<trestleComm>& use);
// Why its creation or finalization failed, if it did.
std::optional<Error> background_failure(trestleComm_t comm);
// end_backgrounds() makes what is under way for the handle end soon, and waits. forget_backgrounds() then drops it.
void end_backgrounds(trestleComm_t comm);
void forget_backgrounds(trestleComm_t comm);

// For waits: kInvalidUsage if the awaited object has `calls` in an open group of this thread, which have not begun.
Status check_begun(const char* function, const char* what, size_t calls);

// The stream of a call: the handle's, or the communicator's own.
Result<std::shared_ptr<Stream>> stream_of(const char* function, trestleStream_t stream,
                                          const std::shared_ptr<Communicator>& communicator);
// Refuses a stream of another device than the communicator's. A communicator without a device takes any.
Status check_device(const char* function, const Stream& stream, const Communicator& communicator);
// A round of progress for a thread that has asked whether the recording is complete.
void test(const Recording& recording);
Status drive_until(const std::function<bool()>& done, const std::shared_ptr<Stream>& stream);
// Enum values as the caller passed them.
Result<DataType> checked_type(const char* function, int type);
// Sets the operator of a request whose type is set: a built-in or a user-defined one of the communicator.
Status set_op(const Communicator& communicator, const char* function, int op, PrepareRequest& request);
// Checks the arguments of a collective; the error describes the first mistake.
Status check_call(const Communicator& communicator, const char* function, const Call& call);

}  // namespace trestle
