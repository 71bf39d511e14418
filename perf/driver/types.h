// The element types and operators under the names of the perf binaries: the words of -d and -o and of the table.
//
// Constant tables, any thread.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trestle::perf {

struct TypeInfo {
  trestleDataType_t type;
  const char* name;
  size_t bytes;  // size of one element
  bool is_float;
};

// "mulsum" among the operators of a table: a pre-multiplied sum, for which every communicator has an operator of its
// own (Backend::mul_sum). The library does not know this number.
inline constexpr auto kMulSum = static_cast<trestleRedOp_t>(trestleNumOps);
inline constexpr int kOps = trestleNumOps + 1;
// The factor of rank `rank`.
constexpr int mul_sum_scalar(int rank) {
  return rank % 2 == 0 ? 1 : 2;
}

// type must be below trestleNumTypes.
const TypeInfo& type_info(trestleDataType_t type);
const char* op_name(trestleRedOp_t op);

// All names, by number.
std::vector<std::string_view> type_names();
std::vector<std::string_view> op_names();
// With blanks between them, for messages.
std::string joined(const std::vector<std::string_view>& names);

}  // namespace trestle::perf
