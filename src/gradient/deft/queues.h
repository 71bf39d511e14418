// DeFT's two queues (section 3.2, four cases): which messages travel in which pass, and which updates are made of how
// many batches. It has no clock: the executor and the simulation give its decisions their times. One thread at a time.
// Equal systems give equal sequences on every rank, so ranks need no message to agree.
//
// `current` is the set that is being synchronised. It is made of the gradients of some batches, summed on each rank
// before they travel. `future` holds the gradients of later batches until the current set has left. It has no
// messages yet, so only its number of batches is kept.
//
// Every batch is in exactly one update: updated batches + pending() = iterations, checked after each one.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gradient/deft/select.h"

namespace trestle {

enum class DeftCase : uint8_t {
  kForward = 1,         // the current set travels during the forward pass
  kBackwardPart = 2,    // a part of the current set travels during the backward pass
  kBackwardRest = 3,    // the rest of the current set travels, and the future set becomes the current one
  kBackwardFuture = 4,  // nothing is left of the current set; the future set and this iteration become the current one
};

struct DeftPass {
  std::optional<DeftCase> which;  // nothing: a forward pass with an empty current set
  DeftSends sends;                // of the current set; its gradients are ready when the pass begins
  DeftSends next_sends;           // of the set that becomes the current one, in order of release; they follow `sends`
  // Batches of the update at the end of a backward pass. The update is of the set that was current when the pass began;
  // all messages of that set must be complete by then. 0: no update. The caller chooses whether to apply the batches'
  // sum or their mean (MergedUpdate, gradient/deft/preserver.h).
  uint32_t update_batches = 0;
  // Batches of the set that becomes the current one. This iteration's gradients are among them in case 4 and in
  // case 3. 0: the current set stays, and this iteration's gradients are added to the future set.
  uint32_t next_batches = 0;
};

struct DeftState {
  std::vector<uint32_t> current;  // items that are still to be placed, ascending
  uint32_t current_batches = 0;   // 0: no set is being synchronised
  uint32_t future_batches = 0;
  auto operator<=>(const DeftState&) const = default;
};

class DeftQueues {
 public:
  // capacity_permille: of each pass's knapsacks, 1000 for the pass itself. Larger ones update more often, and compute
  // waits for what does not fit (Preserver). Errors: those of deft_partition; a capacity below 1000.
  static Result<DeftQueues> make(DeftSystem system, uint32_t capacity_permille = 1000);

  // Returns to the state that make() gives, but keeps the selections that were computed.
  void restart();

  // Alternate, beginning with forward() (CHECKed).
  DeftPass forward();
  DeftPass backward();

  const DeftSystem& system() const { return system_; }
  const std::vector<DeftItem>& items() const { return items_; }
  const DeftState& state() const { return state_; }  // between iterations all later passes follow from it
  uint64_t pending() const { return uint64_t{state_.current_batches} + state_.future_batches; }

 private:
  DeftQueues(DeftSystem system, std::vector<DeftItem> items, uint32_t capacity_permille);
  std::vector<uint64_t> capacities(uint64_t pass_us) const;
  void remove_from_current(const DeftSends& sends);
  void next_set(DeftPass& pass, const std::vector<uint64_t>& left_us);
  const DeftSends& select(const std::vector<uint64_t>& left_us);

  DeftSystem system_;
  std::vector<DeftItem> items_;
  std::vector<uint64_t> forward_capacities_us_;
  std::vector<uint64_t> backward_capacities_us_;
  // Selections by the capacity left on each link. The sequence of passes repeats, so after its first cycle none is
  // computed again.
  std::map<std::vector<uint64_t>, DeftSends> selections_;
  DeftState state_;
  bool in_iteration_ = false;
  uint64_t iterations_ = 0;
  uint64_t updated_batches_ = 0;
};

}  // namespace trestle
