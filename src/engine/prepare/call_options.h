// CallOptions: how to run one call, where this differs from the communicator's configuration.
//
// Value type, shared by the calls of a scope; any thread. All ranks must have the same: `text` is compared, hashed and
// shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/hash.h"

namespace trestle {

struct CallOptions {
  std::optional<std::string> algorithm;  // as TRESTLE_ALGO
  std::optional<std::string> schedule;   // as TRESTLE_SCHED
  std::optional<int64_t> chunks;         // as TRESTLE_CHUNKS
  bool deterministic = false;            // decide by nominal speeds only
  std::string text;                      // all options as text, made by seal()
  uint64_t hash = 0;

  void seal() {
    text.clear();
    if (algorithm) text += " algo=" + *algorithm;
    if (schedule) text += " sched=" + *schedule;
    if (chunks) text += " chunks=" + std::to_string(*chunks);
    if (deterministic) text += " deterministic";
    hash = Hasher().string(text).digest();
  }
};

// nullptr inside: no options.
struct SharedOptions {
  std::shared_ptr<const CallOptions> options;

  explicit operator bool() const { return options != nullptr; }
  const CallOptions* operator->() const { return options.get(); }
  uint64_t hash() const { return options ? options->hash : 0; }
  std::string text() const { return options ? options->text : ""; }
  bool operator==(const SharedOptions& other) const { return options == other.options || text() == other.text(); }
};

}  // namespace trestle
