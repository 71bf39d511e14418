// The registry where the loopback endpoints of a process find each other, and the mailbox that each of them has there.
//
// The registry is process-wide, which is otherwise avoided: threads of one process share no other object. It holds weak
// references to open endpoints. It decides nothing, keeps nothing alive and is empty when the last endpoint is closed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "transport/transport.h"

namespace trestle {

// What one endpoint tells another one. Notes of one sender arrive in order.
struct LoopbackNote {
  enum class Kind : uint8_t {
    kHello,    // first contact: tell me when you close
    kMessage,  // `send` may be read until kTaken is answered
    kTaken,    // `send`, yours, has been read
    kNotice,   // states the operation that its sender runs: only `tag`
    kGoodbye,  // closed in order: nothing more comes, and all completed messages have been delivered
    kGone,     // closed with messages open
  };
  Kind kind = Kind::kHello;
  int32_t from = 0;
  SendRequest* send = nullptr;  // kMessage: read only between begin_reading() and end_reading() of its owner
  MessageTag tag;               // of kMessage and kNotice
};

// Shared by its owner and all endpoints that write to it; any thread.
class Mailbox {
 public:
  // ring: wakes the owner; called under the lock. Empty: nothing does.
  void on_arrival(std::function<void()> ring);

  // Wakes the owner if it sleeps.
  void put(const LoopbackNote& note);
  // Moves all notes to `notes`, which must be empty; its capacity is kept in the box. False: there are none, which
  // costs one load.
  bool take(std::vector<LoopbackNote>& notes);

  bool prepare_sleep();
  void finish_sleep();

  // Reading the owner's memory. begin_reading() is false once the owner has closed: then the memory must not be read.
  bool begin_reading();
  void end_reading() { readers_.fetch_sub(1, std::memory_order_release); }
  // No new readers.
  void shut() { shut_.store(true, std::memory_order_seq_cst); }
  // Whether the present ones have not finished yet.
  bool is_read() const { return readers_.load(std::memory_order_seq_cst) != 0; }

 private:
  Mutex mutex_;  // held for a push or a swap only
  std::vector<LoopbackNote> notes_ TRESTLE_GUARDED_BY(mutex_);
  bool asleep_ TRESTLE_GUARDED_BY(mutex_) = false;
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint32_t> readers_{0};
  std::atomic<bool> shut_{false};
  std::function<void()> ring_ TRESTLE_GUARDED_BY(mutex_);
};

// False: an open mailbox has the place.
bool pin_mailbox(const std::string& job, int32_t rank, const std::shared_ptr<Mailbox>& mailbox);
void unpin_mailbox(const std::string& job, int32_t rank, const Mailbox* mailbox);
// Null when the rank has no open endpoint in this process.
std::shared_ptr<Mailbox> find_mailbox(const std::string& job, int32_t rank);

}  // namespace trestle
