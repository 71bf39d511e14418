// The C API: communicators that are created, split or finalized in the background (config.blocking = 0).
#include "api/background.h"

#include "base/scope_exit.h"

namespace trestle {

namespace {

Error in_progress() {
  return {Code::kInProgress, ""};
}

void set_own(trestleComm_t comm, std::shared_ptr<Background> background) {
  const MutexLock lock(comm->mutex);
  comm->own.swap(background);
}

std::shared_ptr<Background> own_of(trestleComm_t comm) {
  const MutexLock lock(comm->mutex);
  return comm->own;
}

// Does nothing if the handle was ended meanwhile.
void no_longer_busy(trestleComm_t comm) {
  uint32_t busy = kBusy;
  comm->state.compare_exchange_strong(busy, kAlive, std::memory_order_acq_rel);
}

void give_back(trestleComm_t comm) {
  set_own(comm, nullptr);
  comm->state.store(kDead, std::memory_order_release);
  HandlePool<trestleComm>::process().bury(comm);
}

Status begin_creation(trestleComm_t* out, const Creation& create) {
  trestleComm_t comm = HandlePool<trestleComm>::process().make();
  comm->state.store(kBusy, std::memory_order_release);
  ScopeExit not_begun([comm] { give_back(comm); });
  auto started = Background::start([comm, create](std::atomic<bool>& stop) -> Status {
    comm->object = TRY(create(stop));
    comm->state.store(kAlive, std::memory_order_release);
    return {};
  });
  if (!started.ok()) return started.error();
  not_begun.release();
  set_own(comm, std::move(started).value());
  *out = comm;
  return in_progress();
}

void let_begin(trestleComm_t comm) {
  if (const auto own = own_of(comm)) own->begin();
}

// Undoes a creation that its group gives up.
void undo_creation(trestleComm_t* out) {
  trestleComm_t comm = std::exchange(*out, nullptr);
  if (comm == nullptr) return;
  end_backgrounds(comm);
  if (const auto made = std::exchange(comm->object, nullptr)) {
    made->abort();
    made->destroy(0);
  }
  give_back(comm);
}

}  // namespace

Status create_for(trestleComm_t* comm, Creation create, bool blocking, const std::function<void()>& take_number) {
  Group& group = Group::of_this_thread();
  if (!blocking && group.open()) {
    group.add_beginning(
        {{}, [=] { return begin_creation(comm, create); }, [=] { let_begin(*comm); }, [=] { undo_creation(comm); }});
    return {};
  }
  if (!blocking) {
    Status begun = begin_creation(comm, create);
    if (begun.error().code != Code::kInProgress) return begun;
    if (take_number) take_number();
    let_begin(*comm);
    return begun;
  }
  const auto run = [create] {
    std::atomic<bool> stop{false};
    return create(stop);
  };
  const auto handle = std::make_shared<ReservedHandle<trestleComm>>();
  const auto publish = [=](std::shared_ptr<Communicator> made) {
    *comm = made == nullptr ? nullptr : handle->take(std::move(made));
  };
  if (group.open()) {
    group.add_creation({run, publish});
  } else {
    if (take_number) take_number();
    publish(TRY(run()));
  }
  return {};
}

Status split_for_others(trestleComm_t parent, Creation split, const std::function<void()>& take_number) {
  const auto may_begin = [parent]() -> Status {
    if (Use(parent).alive()) return {};
    return invalid_usage("CommSplit: comm has ended since, in the same group");
  };
  const auto started = std::make_shared<std::shared_ptr<Background>>();
  const auto begin = [=]() -> Status {
    const Use use(parent);
    TRY(may_begin());
    *started = TRY(Background::start([split](std::atomic<bool>& stop) -> Status {
      TRY(split(stop));
      return {};
    }));
    const MutexLock lock(parent->mutex);
    parent->splits.push_back(*started);
    return in_progress();
  };
  const auto go = [started] { (*started)->begin(); };
  // A split that has begun continues: the other ranks wait for it.
  const auto undo = [parent, started] {
    if (!(*started)->give_up()) return;
    const MutexLock lock(parent->mutex);
    std::erase(parent->splits, *started);
  };
  Group& group = Group::of_this_thread();
  if (group.open()) {
    group.add_beginning({may_begin, begin, go, undo});
    return {};
  }
  Status begun = begin();
  if (begun.error().code != Code::kInProgress) return begun;
  take_number();
  go();
  return begun;
}

Status begin_finalization(trestleComm_t comm, const std::shared_ptr<Communicator>& communicator) {
  const Use use(comm);  // a thread that ends the handle meanwhile waits until there is a task to stop
  if (!use.alive() || comm->object != communicator) return {};
  uint32_t alive = kAlive;
  if (!comm->state.compare_exchange_strong(alive, kBusy, std::memory_order_acq_rel)) return {};
  ScopeExit not_begun([comm] { no_longer_busy(comm); });
  auto started = Background::start([comm, communicator](std::atomic<bool>& stop) -> Status {
    const Status status = communicator->finalize(&stop);
    no_longer_busy(comm);
    return status;
  });
  if (!started.ok()) return started.error();
  not_begun.release();
  set_own(comm, started.value());
  started.value()->begin();
  return in_progress();
}

Status background_status(const Use<trestleComm>& use) {
  trestleComm_t comm = use.handle();
  const MutexLock lock(comm->mutex);
  if (comm->own != nullptr && !comm->own->ended()) return in_progress();
  if (comm->own != nullptr && !comm->own->status().ok()) return comm->own->status();
  if (comm->state.load(std::memory_order_acquire) == kBusy) return in_progress();  // the finalization is about to begin
  for (const auto& split : comm->splits) {
    if (!split->ended()) return in_progress();
  }
  Status first;
  for (const auto& split : comm->splits) {
    if (first.ok()) first = split->status();
  }
  comm->splits.clear();
  return first;
}

Status check_ready(const Use<trestleComm>& use, const char* function) {
  if (use.alive()) return {};
  if (!use.busy()) return dead_handle(use, function, "communicator");
  if (const auto failure = background_failure(use.handle())) return *failure;
  return invalid_usage(std::string(function) +
                       ": the communicator is in progress: ask trestleCommGetAsyncError until it returns something "
                       "other than trestleInProgress");
}

std::optional<Error> background_failure(trestleComm_t comm) {
  const auto own = own_of(comm);
  if (own == nullptr || !own->ended() || own->status().ok()) return std::nullopt;
  return own->status().error();
}

void forget_backgrounds(trestleComm_t comm) {
  set_own(comm, nullptr);
}

void end_backgrounds(trestleComm_t comm) {
  std::vector<std::shared_ptr<Background>> all;
  {
    const MutexLock lock(comm->mutex);
    if (comm->own != nullptr) comm->splits.push_back(comm->own);  // before any is taken: it may find no memory
    all.swap(comm->splits);
  }
  for (const auto& one : all) one->stop();
  for (const auto& one : all) one->join();
}

}  // namespace trestle
