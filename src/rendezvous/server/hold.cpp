#include "rendezvous/server/hold.h"

#include <sys/eventfd.h>

namespace trestle {

RendezvousBell::RendezvousBell() : fd_(UniqueFd::open([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); })) {}

bool RendezvousBell::opened() const {
  const MutexLock lock(mutex_);
  return static_cast<bool>(fd_);
}

void RendezvousBell::ring() const {
  const MutexLock lock(mutex_);
  if (fd_) eventfd_write(fd_.get(), 1);
}

void RendezvousBell::quiet() const {
  const MutexLock lock(mutex_);
  eventfd_t count = 0;
  if (fd_) eventfd_read(fd_.get(), &count);
}

int RendezvousBell::fd() const {
  const MutexLock lock(mutex_);
  return fd_ ? fd_.get() : -1;
}

void RendezvousBell::close() {
  const MutexLock lock(mutex_);
  fd_.reset();
}

void RendezvousHold::made(const JobId& job) {
  const MutexLock lock(mutex_);
  job_ = job;
}

// The function is called without the lock: what it fails releases the hold.
void RendezvousHold::on_conflict(Fail fail) {
  std::optional<Error> before;
  {
    const MutexLock lock(mutex_);
    if (released_) return;
    fail_ = fail;
    before = conflict_;
  }
  if (before) fail(*before);
}

void RendezvousHold::release() {
  {
    const MutexLock lock(mutex_);
    released_ = true;
    fail_ = nullptr;
  }
  bell_->ring();
}

bool RendezvousHold::is_of(const JobId& job) const {
  const MutexLock lock(mutex_);
  return job_ == job;
}

bool RendezvousHold::released() const {
  const MutexLock lock(mutex_);
  return released_;
}

void RendezvousHold::conflict(const Error& error) {
  Fail fail;
  {
    const MutexLock lock(mutex_);
    if (released_) return;
    conflict_ = error;
    fail = fail_;
  }
  if (fail) fail(error);
}

}  // namespace trestle
