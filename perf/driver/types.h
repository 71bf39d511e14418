// The element types and operators as the perf binaries name them: the words of -d and -o and of the table's columns.
//
// Constant tables, any thread.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trestle::perf {

struct TypeInfo {
  trestleDataType_t type;
  const char* name;
  size_t bytes;  // of one element
  bool is_float;
};

// type must be below trestleNumTypes.
const TypeInfo& type_info(trestleDataType_t type);
const char* op_name(trestleRedOp_t op);

std::optional<trestleDataType_t> find_type(std::string_view name);
std::optional<trestleRedOp_t> find_op(std::string_view name);

// All names, separated by blanks, for messages.
std::string type_names();
std::string op_names();

}  // namespace trestle::perf
