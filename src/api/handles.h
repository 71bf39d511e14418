// The C API's handles: the objects that a trestleComm_t and the other handle types point to, and how a destroyed handle
// is recognised.
//
// Handles are never returned to the allocator. A destroyed one goes to its pool and is reused later, so reading a dead
// handle is always defined. A forked child has a pool of its own; inherited handles stay the parent's, and every call
// refuses them. Any thread. Used by src/api only.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/mutex.h"
#include "comm/communicator/communicator.h"
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
    // Read before the atomic addition, which no later load overtakes: so the processor fetches the handle and the
    // process's generation at the same time, if neither is in its cache.
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

// Of a handle that was ended: until no call uses it.
template <class H>
void wait_for_users(H* handle) {
  while (handle->users.load(std::memory_order_acquire) != 0) Progress::process().poke(nullptr);
}

// Why a handle that is not alive takes no call: it was `ended` ("destroyed"), or belongs to the process that forked
// this one.
Error dead_handle(bool inherited, const char* function, const char* what, const char* ended);
template <class H>
Error dead_handle(const Use<H>& use, const char* function, const char* what, const char* ended = "destroyed") {
  return dead_handle(use.inherited(), function, what, ended);
}

inline void fail_without_memory(trestleComm_t comm) {
  Use use(comm);
  if (use.alive()) use.object()->engine().fail_without_memory();
}

}  // namespace trestle
