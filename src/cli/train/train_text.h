// A report of `trestle train` as text and as JSON. Pure, any thread.
#pragma once

#include <string>

#include "cli/train/train.h"

namespace trestle {

std::string train_text(const TrainReport& report);
// One object: workload, tensors, bytes, forward_s, backward_s, policies (list of policy, iteration_s, exposed_s,
// speedup_over_wfbp, messages, updates_per_iteration, age, groups, gather_groups, batches; for auto also chosen; if it
// compresses also ratio, collective, selection_s; for deft with --loss also capacity, loss_ratio, loss_accepted),
// refused; with --copy also copy_per_byte_s, with --topo also fits (list of collective, startup_s, per_byte_s, points
// of bytes, predicted_s, fitted_s), with --links also link_ratios. Groups are the first and the last tensor, from 0 in
// forward order.
std::string train_json(const TrainReport& report);
// The built-in networks, with their compute times and the sources of these.
std::string train_list();

}  // namespace trestle
