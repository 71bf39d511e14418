#include "perf/driver/types.h"

#include <array>

#include "base/text/names.h"
#include "base/text/value_text.h"

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

std::vector<std::string_view> type_names() {
  return names_of(kTypes);
}

std::vector<std::string_view> op_names() {
  return {kOpNames.begin(), kOpNames.end()};
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string all;
  for (const std::string_view name : names) all.append(all.empty() ? "" : " ").append(name);
  return all;
}

}  // namespace trestle::perf
