// The C API's handles: what a trestleComm_t and its kin point to, and how a handle that was destroyed is told from one
// that lives.
//
// Handles are never returned to the allocator: a destroyed one goes to its pool and is made again later, so that
// looking at a dead handle is always defined. Any thread. Used by api*.cpp only.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/communicator.h"
#include "trestle/trestle.h"

namespace trestle {

inline constexpr uint32_t kAlive = 0x7e571e02;
inline constexpr uint32_t kDead = 0xdead7e57;

template <class T>
struct Handle {
  std::atomic<uint32_t> state{kDead};
  std::atomic<uint32_t> users{0};  // calls that are in it
  std::shared_ptr<T> object;
};

// A request of a separated all-reduce.
struct SeparatedAllReduce {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<Stream> stream;
  Call start, finish;
  bool persistent = false;
  std::mutex mutex;
  enum class State { kInactive, kStarted, kFinishing } state = State::kInactive;
  std::shared_ptr<Event> done;      // of what was last started
  std::shared_ptr<Stream> running;  // where that is
};

template <class H>
class HandlePool {
 public:
  H* make() {
    std::lock_guard lock(mutex_);
    if (!dead_.empty()) {
      H* handle = dead_.back();
      dead_.pop_back();
      return handle;
    }
    all_.push_back(std::make_unique<H>());
    return all_.back().get();
  }
  void bury(H* handle) {
    std::lock_guard lock(mutex_);
    // Reused late, so that a use of a destroyed handle is mostly answered as one.
    dead_.insert(dead_.begin(), handle);
  }
  static HandlePool& process() {
    static auto* pool = new HandlePool;  // outlives every thread that may still call
    return *pool;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<H>> all_;
  std::vector<H*> dead_;
};

}  // namespace trestle

struct trestleComm : trestle::Handle<trestle::Communicator> {};
struct trestleStream : trestle::Handle<trestle::Stream> {};
struct trestleEvent : trestle::Handle<trestle::Event> {};
struct trestleRequest : trestle::Handle<trestle::SeparatedAllReduce> {};

namespace trestle {

// Marks a handle as in use for the length of a call.
template <class H>
class Use {
 public:
  explicit Use(H* handle) : handle_(handle) {
    if (handle_ == nullptr) return;
    handle_->users.fetch_add(1, std::memory_order_acq_rel);
    alive_ = handle_->state.load(std::memory_order_acquire) == kAlive;
  }
  ~Use() {
    if (handle_ != nullptr) handle_->users.fetch_sub(1, std::memory_order_acq_rel);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  bool alive() const { return alive_; }
  auto& object() { return handle_->object; }

 private:
  H* handle_;
  bool alive_ = false;
};

template <class H, class T>
H* make_handle(std::shared_ptr<T> object) {
  H* handle = HandlePool<H>::process().make();
  handle->object = std::move(object);
  handle->state.store(kAlive, std::memory_order_release);
  return handle;
}

// Ends the handle for new calls; true for the one caller that ended it.
template <class H>
bool end_handle(H* handle) {
  uint32_t alive = kAlive;
  return handle->state.compare_exchange_strong(alive, kDead, std::memory_order_acq_rel);
}

// ---- errors at the boundary

trestleResult_t report(Error error);  // keeps the sentence for GetLastError of this thread
// The one place where exceptions end.
template <class F>
trestleResult_t guarded(F&& body) noexcept {
  try {
    Status status = body();
    return status.ok() ? trestleSuccess : report(std::move(status).error());
  } catch (const std::bad_alloc&) {
    return report({Code::kSystemError, "out of memory"});
  } catch (const std::exception& e) {
    return report({Code::kInternalError, std::string("unexpected exception: ") + e.what()});
  } catch (...) {
    return report({Code::kInternalError, "unexpected exception"});
  }
}

inline Error invalid_argument(std::string sentence) {
  return {Code::kInvalidArgument, std::move(sentence)};
}
inline Error invalid_usage(std::string sentence) {
  return {Code::kInvalidUsage, std::move(sentence)};
}

// The stream of a call: the handle's, or the communicator's own.
Result<std::shared_ptr<Stream>> stream_of(trestleStream_t stream, const std::shared_ptr<Communicator>& communicator);
Status drive_until(const std::function<bool()>& done, const std::shared_ptr<Stream>& stream);
// Numbers of enums as they came in.
Result<DataType> checked_type(const char* function, int type);
Result<ReduceOp> checked_op(const char* function, int op);
// Whatever is wrong with the arguments of a collective, in a sentence.
Status check_call(const Communicator& communicator, const char* function, const Call& call);
// Fills in what follows from the arguments (in place), then enqueues or adds to the open group.
Status enqueue_call(const std::shared_ptr<Communicator>& communicator, const char* function, Call call,
                    trestleStream_t stream);

}  // namespace trestle
