#include "base/thread.h"

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/cpu/float_environment.h"

namespace trestle {

namespace {

// Plain stdio, which takes no memory for standard error. The log may be switched off.
[[noreturn]] void end_process(const char* what, const char* where) {
  std::fprintf(stderr, "trestle: %s %s: the process ends, because nobody could finish what is half done\n", what,
               where);
  std::fflush(stderr);
  std::abort();
}

struct Start {
  const char* name;
  std::function<void()> body;
};

void* run(void* start) {
  const std::unique_ptr<Start> owned(static_cast<Start*>(start));
  const FloatEnvironment environment;  // a new thread inherits that of the thread which starts it
  char where[64];
  std::snprintf(where, sizeof where, "on the library's %s thread", owned->name);
  run_or_end_process(where, owned->body);
  return nullptr;
}

}  // namespace

void thread_internal::run_or_end_process(const char* where, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    end_process("out of memory", where);
  } catch (...) {
    end_process("unexpected exception", where);
  }
}

Result<Thread> Thread::start(const char* name, std::function<void()> body) {
  auto owned = std::make_unique<Start>(Start{name, std::move(body)});
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
