#include "plan/message_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace trestle {

uint32_t messages_of(const Plan& plan, const Step& step) {
  if (is_message(step)) return 1;
  const auto* const sources = plan.sources.data() + step.first_source;
  return static_cast<uint32_t>(std::count_if(sources, sources + step.sources, is_peer_source));
}

namespace {

// Of a step with one message.
int32_t peer_of(const Plan& plan, const Step& step) {
  if (is_message(step)) return step.peer;
  const auto* const sources = plan.sources.data() + step.first_source;
  return std::find_if(sources, sources + step.sources, is_peer_source)->peer;
}

}  // namespace

std::vector<std::vector<uint32_t>> message_rows(const Plan& plan) {
  std::vector<std::vector<uint32_t>> rows;
  std::vector<size_t> row_of(plan.steps.size());
  std::map<std::pair<bool, int32_t>, size_t> row_with;  // by direction and peer
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const uint32_t messages = messages_of(plan, step);
    if (messages == 0) continue;
    size_t row = rows.size();
    if (step.after != kNoStep) {
      row = row_of[step.after];
    } else if (messages == 1) {
      row = row_with.try_emplace({step.kind == StepKind::kSend, peer_of(plan, step)}, row).first->second;
    }
    if (row == rows.size()) rows.emplace_back();
    row_of[s] = row;
    rows[row].push_back(s);
  }
  return rows;
}

std::vector<uint32_t> previous_in_rows(const Plan& plan) {
  std::vector<uint32_t> previous(plan.steps.size(), kNoStep);
  for (const std::vector<uint32_t>& row : message_rows(plan)) {
    for (size_t i = 1; i < row.size(); ++i) previous[row[i]] = row[i - 1];
  }
  return previous;
}

}  // namespace trestle
