#include "base/thread.h"

#include <signal.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace trestle {

namespace {

void* run(void* body) {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(body));
  (*owned)();
  return nullptr;
}

}  // namespace

Result<Thread> Thread::start(std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t id{};
  const int problem = pthread_create(&id, nullptr, run, owned.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (problem != 0) {
    return Error{Code::kSystemError, std::string("a thread could not be started: ") + std::strerror(problem) +
                                         " (limits of processes, threads or memory: ulimit -u, pids.max)"};
  }
  (void)owned.release();  // the thread owns it now
  Thread thread;
  thread.id_ = id;
  return thread;
}

Thread::Thread(Thread&& other) noexcept : id_(std::exchange(other.id_, std::nullopt)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this == &other) return *this;
  join();
  id_ = std::exchange(other.id_, std::nullopt);
  return *this;
}

void Thread::join() {
  if (!id_) return;
  CHECK(pthread_join(*id_, nullptr) == 0, "a thread cannot be joined");
  id_.reset();
}

void Thread::detach() {
  if (!id_) return;
  CHECK(pthread_detach(*id_) == 0, "a thread cannot be detached");
  id_.reset();
}

}  // namespace trestle
