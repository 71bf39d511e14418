#include "algorithms/rows.h"

#include "base/check.h"

namespace trestle {

Plan build_alone(const PlanRequest& request) {
  CHECK(request.group_size == 1, "a group of one was expected");
  PlanBuilder builder(request, 1);
  builder.copy(output(0), input(0), 0);
  return std::move(builder).finish();
}

}  // namespace trestle
