#include "comm/setup/background.h"

#include <utility>

namespace trestle {

Result<std::shared_ptr<Background>> Background::start(Body body) {
  std::shared_ptr<Background> made(new Background(std::move(body)));
  const MutexLock lock(made->mutex_);
  made->thread_ = TRY(Thread::start("background", [self = made.get()] { self->run(); }));
  return made;
}

void Background::run() {
  gate_.wait(kClosed);
  status_ = gate_ == kBegin ? body_(stop_) : Error{Code::kAborted, "it was cancelled before it began"};
  body_ = nullptr;  // frees what the body holds
  ended_.store(true, std::memory_order_release);
}

void Background::join() {
  const MutexLock lock(mutex_);
  thread_.join();
}

}  // namespace trestle
