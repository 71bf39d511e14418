// StepRun: a plan that is carried out, from its installation on.
//
// Used by the executor's thread only. There is one kind for plans whose steps are all alike (list_run.h), one for plans
// under which only the largest elements travel (sparse_run.h), and one for plans that delay gradients (delayed_run.h).
#pragma once

#include <memory>
#include <vector>

#include "gradient/executor/message_channel.h"
#include "gradient/executor/trace/step_trace.h"
#include "gradient/policy/policy.h"

namespace trestle {

// Everything must live longer than the run, except the bell.
struct RunUse {
  const std::vector<trestleComm_t>& comms;  // one for each link
  const std::vector<TensorEntry>& tensors;
  const GradientSettings& settings;
  StepBoard& board;
  TrafficCounts& counts;
  std::shared_ptr<Bell> bell;  // rings when a message is complete
  StepTrace& trace;

  // Where the gradient of the present step lies.
  std::byte* gradient(uint32_t tensor) const {
    std::byte* const given = board.gradient(tensor);
    return given != nullptr ? given : tensors[tensor].gradient;
  }
};

class StepRun {
 public:
  // Waits for messages that are on their way.
  virtual ~StepRun() = default;
  // Between steps, before the first turn.
  virtual void begin() = 0;
  // Does what can be done now. True if something changed. Failures go to the board.
  virtual bool turn() = 0;
  // Whether everything of the steps that have ended is complete, and nothing is on its way.
  virtual bool drained() const = 0;
  // Whether messages of this rank are on their way on that link.
  virtual bool is_busy(size_t link) const = 0;
  // Whether so many messages are under way that the links stay busy after the next one is complete. Its end rings the
  // bell, and that is soon enough to look at gradients that have become ready. False if each mark itself makes work.
  virtual bool is_supplied() const { return false; }
  // How many steps have gradients that are not all in results yet.
  virtual uint32_t pending() const { return 0; }
  // Collective, when drained: brings in the pending gradients as one result of each tensor, and returns the number of
  // their steps. Error: the communicator's, an update's.
  virtual Result<uint32_t> bring_in() { return uint32_t{0}; }
};

// Not collective. The plan must pass check_plan. Errors: those of trestleMemAlloc and of the Init calls, and of
// check_compressible.
Result<std::unique_ptr<StepRun>> make_step_run(const RunUse& use, const PlannedStep& step,
                                               const GradientWorkload& workload);

}  // namespace trestle
