// The loops that every kind of StepRun has. Used by the executor's thread only.
#pragma once

#include "gradient/executor/step_board.h"

namespace trestle {

// Takes the complete messages of a channel, oldest first, and calls finish() after each. True if there was one. After a
// failure (of a message, of finish() or of the board) messages are taken without finish().
template <class Channel, class Finish>
bool collect_complete(Channel& channel, StepBoard& board, const Finish& finish) {
  bool changed = false;
  while (const auto complete = channel.poll()) {
    changed = true;
    if (board.failure()) continue;
    Status status = *complete;
    if (status.ok()) status = finish();
    if (!status.ok()) board.fail(status.error());
  }
  return changed;
}

// Calls body() with everything that next() returns, until next() returns nothing or something has failed. True if there
// was anything. After a failure next() is not called.
template <class Next, class Body>
bool do_all(StepBoard& board, const Next& next, const Body& body) {
  bool changed = false;
  while (!board.failure()) {
    const auto what = next();
    if (!what) break;
    changed = true;
    const Status status = body(*what);
    if (!status.ok()) board.fail(status.error());
  }
  return changed;
}

}  // namespace trestle
