// DelayedLink: the delayed messages of one link, as persistent all-reduces of its communicator on one stream.
//
// Used by the executor's thread only. Messages travel from the memory of the sums (delayed_memory.h), so nothing is
// copied.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gradient/deft/partition.h"
#include "gradient/executor/message_channel.h"
#include "gradient/executor/run/delayed_memory.h"

namespace trestle {

class DelayedLink {
 public:
  struct Use {
    trestleComm_t comm = nullptr;
    int op = 0;  // trestleRedOp_t
    DelayedMemory& memory;
    TrafficCounts& counts;
    std::shared_ptr<Bell> bell;
  };
  // carried: by item, whether it may travel on this link. Not collective. Errors: those of the Init calls.
  static Result<std::unique_ptr<DelayedLink>> make(const Use& use, const std::vector<DeftItem>& items,
                                                   const std::vector<bool>& carried);
  // Waits for messages that are on their way.
  ~DelayedLink();
  DelayedLink(const DelayedLink&) = delete;
  DelayedLink& operator=(const DelayedLink&) = delete;

  Status start(uint32_t item, uint64_t set);
  // The oldest message that was started, if it is complete; then it no longer counts as started.
  std::optional<Status> poll();
  bool idle() const { return started_.empty(); }

 private:
  struct Message {
    std::vector<CoreRequest> requests;  // one for each type
    uint64_t bytes = 0;
    std::optional<MessageEnd> end;
  };
  explicit DelayedLink(const Use& use) : use_(use) {}
  Status build(const DeftItem& item, uint64_t set, Message& message);
  Status checked(trestleResult_t result) const { return core_status(result, use_.comm); }

  const Use use_;
  CoreStream stream_;
  std::vector<Message> messages_;  // for each item two: of even sets, then of odd ones; freed before the stream
  std::deque<size_t> started_;
};

}  // namespace trestle
