// For stream_hold: a user whose streams are held. It reports over a pipe that they are held, and releases them when it
// is told to.
#pragma once

#include <string>

#include "base/result.h"

namespace trestle::perf {

enum class HoldWay { kNothing, kWord, kHost, kSpin };

// What another thread of the user does meanwhile. The driver may let it wait until the streams go on.
enum class HoldAct { kNothing, kLoad, kPageable, kFree, kFreePinned, kUnmap };

struct HoldCase {
  HoldWay way = HoldWay::kNothing;
  int streams = 1;  // of the user
  int held = 1;     // of these
  HoldAct act = HoldAct::kNothing;
};

// One side of two pipes between the user and the measuring side. A signal is one byte.
struct Signals {
  int to_read = -1;
  int to_write = -1;
  Status send() const;
  Status receive() const;
};

// Opens the device and warms up all streams; receives; submits work to all streams and holds some of them; sends;
// receives; releases the streams, and waits for the end of their work. It opens and allocates nothing after the first
// receive(). So the measuring side can ensure that neither side does while a stream is held. It also sends after a
// failure, so that the measuring side does not wait for a user that failed.
Status hold_streams(const HoldCase& what, const Signals& signals);

}  // namespace trestle::perf
