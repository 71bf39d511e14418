// The messages of one rank's plan as a shape of the model of steps. Pure, any thread.
#pragma once

#include "plan/plan.h"
#include "sched/model/steps_model_shape.h"

namespace trestle {

// Fills in the messages that the rank sends, in plan order, and what each of them waits for. The k-th message that it
// receives is taken to arrive when its own k-th one does. Sends to the same peer in turn (Step::after) are the parts of
// one message. False: the rank does not receive as many messages as it sends.
bool shape_of(const Plan& plan, PhaseShape& shape);

}  // namespace trestle
