// Functions that return trestleInProgress: creations, splits and finalizations on other threads, and whether a
// communicator is ready for calls. Any thread. Used by src/api only.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/errors.h"
#include "api/handles.h"

namespace trestle {

// Checks that the communicator takes calls: not destroyed, not in progress, and its creation did not fail.
Status check_ready(const Use<trestleComm>& use, const char* function);
// Calls body(Communicator&) with a communicator that takes calls, or has failed.
template <class F>
trestleResult_t with_comm(trestleComm_t comm, const char* function, F&& body) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return invalid_argument(std::string(function) + ": comm is NULL");
    Use use(comm);
    TRY(check_ready(use, function));
    return body(*use.object());
  });
}

using Creation = std::function<Result<std::shared_ptr<Communicator>>(std::atomic<bool>& stop)>;
// Creates a communicator for *comm: now, at the group's end, or (not `blocking`) on another thread: kInProgress.
// `take_number`, if given, is called when nothing can refuse the creation any more, before it begins. In a group the
// caller must arrange for that.
Status create_for(trestleComm_t* comm, Creation create, bool blocking, const std::function<void()>& take_number = {});
// A split that gives this rank no communicator, on another thread: kInProgress. The caller holds a Use of `parent`.
Status split_for_others(trestleComm_t parent, Creation split, const std::function<void()>& take_number);
// Finalizes on another thread: kInProgress. kSuccess: the handle no longer holds that communicator, so the caller must
// wait for it itself.
Status begin_finalization(trestleComm_t comm, const std::shared_ptr<Communicator>& communicator);
// kSuccess, kInProgress, or why the creation or finalization failed. A failure of a split without a handle is reported
// once.
Status background_status(const Use<trestleComm>& use);
// Why its creation or finalization failed, if it did.
std::optional<Error> background_failure(trestleComm_t comm);
// end_backgrounds() makes what is under way for the handle end soon, and waits. forget_backgrounds() then drops it.
void end_backgrounds(trestleComm_t comm);
void forget_backgrounds(trestleComm_t comm);

}  // namespace trestle
