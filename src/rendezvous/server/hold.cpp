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
uint64_t RendezvousHold::on_conflict(const Fail& fail) {
  std::optional<Error> before;
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = ++numbers_;
    if (released_) return number;
    fails_.emplace(number, fail);
    before = conflict_;
  }
  if (before) fail(*before);
  return number;
}

void RendezvousHold::forget(uint64_t number) {
  const MutexLock lock(mutex_);
  fails_.erase(number);
}

void RendezvousHold::release() {
  {
    const MutexLock lock(mutex_);
    released_ = true;
    fails_.clear();
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
  std::map<uint64_t, Fail> fails;
  {
    const MutexLock lock(mutex_);
    if (released_) return;
    conflict_ = error;
    fails = fails_;
  }
  for (const auto& [number, fail] : fails) fail(error);
}

}  // namespace trestle
