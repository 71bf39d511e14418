#include "base/types.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text/names.h"
#include "base/text/value_text.h"

namespace trestle {
namespace {

constexpr std::array<const char*, kDataTypes> kDataTypeNames = {
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
constexpr std::array<const char*, kReduceOps> kReduceOpNames = {"sum", "prod", "max", "min", "avg"};
constexpr std::array<const char*, kAllReduceOps - kReduceOps> kCustomOpNames = {
    "PreMulSum", "user-defined, commutative", "user-defined, not commutative"};
constexpr std::array<const char*, kCollectives> kCollectiveNames = [] {
  std::array<const char*, kCollectives> names{};
  for (size_t i = 0; i < kCollectives; ++i) names[i] = kCollectiveRows[i].name;
  return names;
}();

template <class Enum, size_t kCount>
const char* name_of(const std::array<const char*, kCount>& names, Enum value) {
  const auto index = static_cast<size_t>(value);
  return index < kCount ? names[index] : "invalid";
}

template <class Enum, size_t kCount>
Result<Enum> parse_name(const std::array<const char*, kCount>& names, std::string_view name, const char* what) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return unknown_name(name, what, {names.begin(), names.end()});
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

const char* to_string(DataType type) {
  return name_of(kDataTypeNames, type);
}
const char* to_string(ReduceOp op) {
  if (!is_valid(op)) return name_of(kCustomOpNames, static_cast<size_t>(op) - kReduceOps);
  return name_of(kReduceOpNames, op);
}
const char* to_string(Collective collective) {
  return name_of(kCollectiveNames, collective);
}

Result<DataType> parse_data_type(std::string_view name) {
  return parse_name<DataType>(kDataTypeNames, name, "a data type");
}
Result<ReduceOp> parse_reduce_op(std::string_view name) {
  return parse_name<ReduceOp>(kReduceOpNames, name, "a reduction operator");
}
Result<Collective> parse_collective(std::string_view name) {
  std::string joined(name);
  std::erase(joined, '_');
  const auto found = std::ranges::find(kCollectiveNames, std::string_view(joined));
  return parse_name<Collective>(kCollectiveNames, found == kCollectiveNames.end() ? name : *found, "a collective");
}

}  // namespace trestle
