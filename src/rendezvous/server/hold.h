// RendezvousHold: rank 0's communicator, and what is split off it, hold the rendezvous at which the ranks met. As long
// as one of them lives, the rendezvous watches its port. If another process comes as a rank that is in the communicator
// already, two jobs meet at one place, and nobody can know which ranks belong together. Then both fail.
//
// Shared by the communicator's creation, the communicator and its parts, which release it with their last reference.
// The rendezvous keeps the state. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/job_id.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

// Wakes the thread of a rendezvous. Shared with the holds, which may outlive the rendezvous.
class RendezvousBell {
 public:
  RendezvousBell();
  bool opened() const;  // false: no descriptor was left
  void ring() const;
  // Makes it quiet again.
  void quiet() const;
  int fd() const;  // -1 after close()
  void close();

 private:
  mutable Mutex mutex_;
  UniqueFd fd_ TRESTLE_GUARDED_BY(mutex_);
};

class RendezvousHold {
 public:
  // Called on the thread of the rendezvous, or on that of on_conflict(), perhaps still during release(). Must not block
  // or throw.
  using Fail = std::function<void(const Error&)>;

  explicit RendezvousHold(std::shared_ptr<RendezvousBell> bell) : bell_(std::move(bell)) {}
  // The communicator that was made; before that the hold only keeps the rendezvous from its end.
  void made(const JobId& job);
  // `fail` is called once if there is a conflict, now or before. Returns its number, for forget().
  uint64_t on_conflict(const Fail& fail);
  void forget(uint64_t number);
  // One that holds it has failed, or all are destroyed: the ranks may come again as other processes.
  void release();

  // For the rendezvous.
  bool is_of(const JobId& job) const;
  bool released() const;
  void conflict(const Error& error);

 private:
  const std::shared_ptr<RendezvousBell> bell_;
  mutable Mutex mutex_;
  std::optional<JobId> job_ TRESTLE_GUARDED_BY(mutex_);
  bool released_ TRESTLE_GUARDED_BY(mutex_) = false;
  std::optional<Error> conflict_ TRESTLE_GUARDED_BY(mutex_);
  std::map<uint64_t, Fail> fails_ TRESTLE_GUARDED_BY(mutex_);
  uint64_t numbers_ TRESTLE_GUARDED_BY(mutex_) = 0;
};

}  // namespace trestle
