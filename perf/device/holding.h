// A user whose streams are held, for stream_hold: it says by a pipe when they are, and lets go when it is told to.
#pragma once

#include <string>

#include "base/result.h"

namespace trestle::perf {

enum class HoldWay { kNothing, kWord, kHost, kSpin };

struct HoldCase {
  HoldWay way = HoldWay::kNothing;
  int streams = 1;  // of the user
  int held = 1;     // of these
};

// Reads and writes one byte: two pipes between the user and the one who measures.
struct Signals {
  int to_read = -1;
  int to_write = -1;
  Status send() const;
  Status receive() const;
};

// Opens the device and warms up all streams; receives; submits work to all streams and holds some of them; sends;
// receives; lets go, and waits for the end. Nothing is opened or allocated after the first receive(), so the one who
// measures decides that nobody does so while a stream is held. Sends also after a failure, so that nobody waits for a
// user who failed.
Status hold_streams(const HoldCase& what, const Signals& signals);

}  // namespace trestle::perf
