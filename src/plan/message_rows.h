// Rows: messages of a plan that may take turns, so that few of them are under way at the same time and need memory.
// Pure.
//
// The messages to one peer are a row, and so are those from one peer. Messages that take turns anyway (Step::after) are
// one row, whichever their peers. A Reduce of several messages is a row alone, because all of them are under way at the
// same time. check_plans() proves that ranks do not wait for each other even where every message waits for the end of
// the one before it in its row.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace trestle {

// How many messages each segment of the step has.
uint32_t messages_of(const Plan& plan, const Step& step);

// The steps of each row, in plan order. Every step that has messages is in one row.
std::vector<std::vector<uint32_t>> message_rows(const Plan& plan);
// By step: the one before it in its row; kNoStep: none.
std::vector<uint32_t> previous_in_rows(const Plan& plan);

}  // namespace trestle
