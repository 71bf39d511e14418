#include "perf/driver/types.h"

#include <array>

namespace trestle::perf {
namespace {

// In the order of trestleDataType_t and trestleRedOp_t: the enumerators are the indices.
constexpr std::array<TypeInfo, trestleNumTypes> kTypes = {{
    {trestleInt8, "int8", 1, false},
    {trestleUint8, "uint8", 1, false},
    {trestleInt32, "int32", 4, false},
    {trestleUint32, "uint32", 4, false},
    {trestleInt64, "int64", 8, false},
    {trestleUint64, "uint64", 8, false},
    {trestleFloat16, "half", 2, true},
    {trestleFloat32, "float", 4, true},
    {trestleFloat64, "double", 8, true},
    {trestleBfloat16, "bfloat16", 2, true},
    {trestleFloat8e4m3, "f8e4m3", 1, true},
    {trestleFloat8e5m2, "f8e5m2", 1, true},
}};
constexpr std::array<const char*, kOps> kOpNames = {"sum", "prod", "max", "min", "avg", "mulsum"};

}  // namespace

const TypeInfo& type_info(trestleDataType_t type) {
  return kTypes[static_cast<size_t>(type)];
}

const char* op_name(trestleRedOp_t op) {
  return kOpNames[static_cast<size_t>(op)];
}

std::optional<trestleDataType_t> find_type(std::string_view name) {
  for (const TypeInfo& info : kTypes) {
    if (name == info.name) return info.type;
  }
  return std::nullopt;
}

std::optional<trestleRedOp_t> find_op(std::string_view name) {
  for (size_t op = 0; op < kOpNames.size(); ++op) {
    if (name == kOpNames[op]) return static_cast<trestleRedOp_t>(op);
  }
  return std::nullopt;
}

std::string type_names() {
  std::string names;
  for (const TypeInfo& info : kTypes) names += std::string(names.empty() ? "" : " ") + info.name;
  return names;
}

std::string op_names() {
  std::string names;
  for (const char* name : kOpNames) names += std::string(names.empty() ? "" : " ") + name;
  return names;
}

}  // namespace trestle::perf
