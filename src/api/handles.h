// The C API's handles: what a trestleComm_t and its kin point to, and how a handle that was destroyed is told from one
// that lives.
//
// Handles are never returned to the allocator: a destroyed one goes to its pool and is made again later, so that
// looking at a dead handle is always defined. A forked child has a pool of its own; the handles that it has inherited
// stay the parent's, and no call takes them. Any thread. Used by api*.cpp only.
#pragma once

#include <atomic>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "api/user_code.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "comm/calls/group.h"
#include "comm/communicator/communicator.h"
#include "comm/setup/background.h"
#include "trestle/trestle.h"

namespace trestle {

inline constexpr uint32_t kAlive = 0x7e571e02;
inline constexpr uint32_t kDead = 0xdead7e57;
inline constexpr uint32_t kBusy = 0x7e571e03;       // a communicator that is being made or finalized on another thread
inline constexpr uint32_t kInherited = 0x7e571e04;  // as a Use sees it: of the process that forked this one

template <class T>
struct Handle {
  const uint32_t generation = process_generation();
  std::atomic<uint32_t> state{kDead};
  std::atomic<uint32_t> users{0};  // calls that are in it
  std::shared_ptr<T> object;
  Handle* buried_next = nullptr;  // its pool's
};

// A request: of an all-reduce in two halves, or of one whole collective that can be started again and again.
struct Request {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<Stream> stream;
  Call start, finish;  // of a whole collective only the first
  bool persistent = false;
  bool whole = false;
  Mutex mutex;
  // kGrouped: a half waits for the end of its group.
  enum class State { kInactive, kStarted, kFinishing, kGrouped } state TRESTLE_GUARDED_BY(mutex) = State::kInactive;
  std::shared_ptr<Recording> done TRESTLE_GUARDED_BY(mutex);  // of what was last started
  std::shared_ptr<Stream> running TRESTLE_GUARDED_BY(mutex);  // where that is
  bool holds_start = false;                                   // its prepared calls in the communicator's cache
  bool holds_finish = false;

  ~Request() {
    if (holds_start) communicator->release_call(start);
    if (holds_finish) communicator->release_call(finish);
  }
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
  // A queue of the handles themselves: a burial needs no memory and no time.
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
  // Those that are dead, in the order of their burials: reused late, so that a use of a destroyed handle is mostly
  // answered as one.
  H* oldest_ TRESTLE_GUARDED_BY(mutex_) = nullptr;
  H* newest_ TRESTLE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace trestle

struct trestleComm : trestle::Handle<trestle::Communicator> {
  trestle::Mutex mutex;
  // Its own making or finalization, under way or the last one that ended.
  std::shared_ptr<trestle::Background> own TRESTLE_GUARDED_BY(mutex);
  // Splits of it that have no handle, because this rank takes part without a colour.
  std::vector<std::shared_ptr<trestle::Background>> splits TRESTLE_GUARDED_BY(mutex);
};
struct trestleStream : trestle::Handle<trestle::Stream> {};
struct trestleEvent : trestle::Handle<trestle::Event> {};
struct trestleRequest : trestle::Handle<trestle::Request> {};

namespace trestle {

// Marks a handle as in use for the length of a call.
template <class H>
class Use {
 public:
  explicit Use(H* handle) : handle_(handle) {
    if (handle_ == nullptr) return;
    handle_->users.fetch_add(1, std::memory_order_acq_rel);
    const bool own = handle_->generation == process_generation();
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

// A handle that is dead until its object is made: then nothing can fail any more. Unused, it goes back to its pool.
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

// Ends the handle for new calls, also a busy one; true for the one caller that ended it.
template <class H>
bool end_handle(H* handle) {
  return handle->state.exchange(kDead, std::memory_order_acq_rel) != kDead;
}

// ---- errors at the boundary

// Keep a sentence for GetLastError of this thread.
trestleResult_t report(Error error) noexcept;
trestleResult_t report_constant(Code code, const char* sentence) noexcept;

// The one place where exceptions end. By itself for queries that a function of the user's may make, too.
template <class F>
trestleResult_t caught(F&& body) noexcept {
  try {
    Status status = body();
    if (!status.ok() && status.error().code == Code::kInProgress) return trestleInProgress;  // nothing to complain of
    return status.ok() ? trestleSuccess : report(std::move(status).error());
  } catch (const std::bad_alloc&) {
    return report_constant(Code::kSystemError, "out of memory");
  } catch (const std::system_error&) {
    return report_constant(Code::kSystemError, "the system refused what the standard library asked for");
  } catch (...) {
    return report_constant(Code::kInternalError, "unexpected exception");
  }
}

template <class F>
trestleResult_t guarded(F&& body) noexcept {
  return called_from_user_code() ? refuse_in_user_code() : caught(std::forward<F>(body));
}

// The same for calls that an open group collects: an error makes the group's end refuse the whole.
template <class F>
trestleResult_t guarded_in_group(F&& body) noexcept {
  if (called_from_user_code()) return refuse_in_user_code();  // the group is not that function's
  const trestleResult_t result = caught([&]() -> Status {
    Status status = body();
    if (!status.ok() && status.error().code != Code::kInProgress) Group::of_this_thread().remember(status.error());
    return status;
  });
  if (result != trestleSuccess && result != trestleInProgress) Group::of_this_thread().spoil(static_cast<Code>(result));
  return result;
}

inline Error invalid_argument(std::string sentence) {
  return {Code::kInvalidArgument, std::move(sentence)};
}
inline Error invalid_usage(std::string sentence) {
  return {Code::kInvalidUsage, std::move(sentence)};
}

// Why a handle that is not alive takes no call: it was `ended` ("destroyed"), or it is of the process that forked this
// one.
Error dead_handle(bool inherited, const char* function, const char* what, const char* ended);
template <class H>
Error dead_handle(const Use<H>& use, const char* function, const char* what, const char* ended = "destroyed") {
  return dead_handle(use.inherited(), function, what, ended);
}

// What the caller's config struct says.
Result<SettingsOverride> read_config(const trestleConfig_t* config);
// What the calling thread's trestleCallConfigPush say, into the call.
void apply_call_config(Call& call);
// That the communicator takes calls: it was not destroyed, it is not in progress, it was not made in vain.
Status check_ready(const Use<trestleComm>& use, const char* function);
// body(Communicator&) with one that takes calls, or has failed.
template <class F>
trestleResult_t with_comm(trestleComm_t comm, const char* function, F&& body) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
    Use use(comm);
    TRY(check_ready(use, function));
    return body(*use.object());
  });
}

// ---- what returns trestleInProgress (api_background.cpp)

using Creation = std::function<Result<std::shared_ptr<Communicator>>(std::atomic<bool>& stop)>;
// Makes a communicator for *comm: now, at the group's end, or (not `blocking`) on another thread: kInProgress.
// `take_number`, if there is one, is called when nothing can refuse the creation any more, before it begins; in a group
// that is the caller's business.
Status create_for(trestleComm_t* comm, Creation create, bool blocking, const std::function<void()>& take_number = {});
// A split that gives this rank no communicator, on another thread: kInProgress. `parent` is in use.
Status split_for_others(trestleComm_t parent, Creation split, const std::function<void()>& take_number);
// Finalization on another thread: kInProgress. kSuccess: the handle is no longer that communicator's, so whoever asks
// has to wait for it.
Status begin_finalization(trestleComm_t comm, const std::shared_ptr<Communicator>& communicator);
// kSuccess, kInProgress, or why it was made or finalized in vain. Of splits without a handle: told once.
Status background_status(const Use<trestleComm>& use);
// Why its making or finalization was in vain, if it was.
std::optional<Error> background_failure(trestleComm_t comm);
// Ends what is under way for the handle, soon; then forgets what it was.
void end_backgrounds(trestleComm_t comm);
void forget_backgrounds(trestleComm_t comm);

// For waits: kInvalidUsage where `calls` of what they are for lie in an open group of this thread, and so have not
// begun.
Status check_begun(const char* function, const char* what, size_t calls);

// The stream of a call: the handle's, or the communicator's own.
Result<std::shared_ptr<Stream>> stream_of(const char* function, trestleStream_t stream,
                                          const std::shared_ptr<Communicator>& communicator);
Status drive_until(const std::function<bool()>& done, const std::shared_ptr<Stream>& stream);
// Numbers of enums as they came in.
Result<DataType> checked_type(const char* function, int type);
// Of a request whose type is set: its operator, built in or of the communicator's caller's making.
Status set_op(const Communicator& communicator, const char* function, int op, PrepareRequest& request);
// Whatever is wrong with the arguments of a collective, in a sentence.
Status check_call(const Communicator& communicator, const char* function, const Call& call);

}  // namespace trestle
