// StreamPoller: the process's threads that ask how far outer streams have come. A device writes a word and wakes no
// thread, so a thread has to look.
//
// One object per process, made at first use; any thread. Its threads start with the first stream and sleep while no
// stream waits. The first one looks often at first; later its naps are a small part of the time that it has waited. It
// never calls a driver that has words in streams. When nothing has moved for long, the second one asks the drivers
// whether the devices have failed. A driver may hold that up until a stream has room, and so until a call is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "base/unique_fd.h"

namespace trestle {

class Engine;
class Stream;

// Something for the process's threads to do when a thread of the driver finds that it is time. The driver's thread may
// do little itself.
class Errand : public std::enable_shared_from_this<Errand> {
 public:
  virtual ~Errand() = default;
  // On the poller's first thread: waits for nothing, and does not call the driver.
  virtual void run() = 0;

 private:
  friend class StreamPoller;
  std::atomic<bool> is_left_{false};
  std::shared_ptr<Errand> self_;  // while it is left
  Errand* next_ = nullptr;
};

class StreamPoller {
 public:
  static StreamPoller& process();
  StreamPoller() = default;
  ~StreamPoller();
  StreamPoller(const StreamPoller&) = delete;
  StreamPoller& operator=(const StreamPoller&) = delete;

  // For as long as the stream exists. Error: the thread could not be started; nothing was added.
  Status add(const std::shared_ptr<Stream>& stream);
  // add() for a stream of the launches of a graph. Never waits.
  void add_place(const std::shared_ptr<Stream>& stream);
  // For calls that nothing drives any more: fails their engines, and lets the outer streams go past them although they
  // are not done. only: those of this engine that are next on their streams; nullptr: all. Leaves out streams of
  // drivers without words in streams, because it calls no driver.
  void let_go(const Engine* only, const Error& why);
  // A stream has begun to wait. Takes no lock.
  void ring();
  // Runs the errand soon, on the first thread; once for all calls that were made before it begins. Only after add().
  // Takes no lock.
  void leave(Errand& errand);

 private:
  using Waiting = std::vector<std::shared_ptr<Stream>>;
  Status start() TRESTLE_REQUIRES(mutex_);
  void look_loop();
  void check_loop();
  void collect(Waiting& waiting);  // adds the streams that wait
  static bool ask(const Waiting& waiting);
  bool run_errands();  // false: there were none

  Mutex mutex_;
  bool started_ TRESTLE_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Stream>> streams_ TRESTLE_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Stream>> places_ TRESTLE_GUARDED_BY(mutex_);  // in graphs
  size_t places_seen_ TRESTLE_GUARDED_BY(mutex_) = 0;                     // when those that are gone were dropped last
  std::atomic<bool> asleep_{false};                                       // until somebody rings
  std::atomic<Errand*> errands_{nullptr};                                 // the last one first
  std::atomic<bool> stop_{false};
  UniqueFd bell_;
  UniqueFd check_bell_;
  Thread looker_;
  Thread checker_;
};

}  // namespace trestle
