// The element types and reduction operators of the library, with their sizes, and the names of these and of the
// collectives (base/collective.h).
//
// Plain values, any thread. The numbers are the wire format, the C API's and NCCL's (nccl.h: ncclDataType_t,
// ncclRedOp_t), so they never change; the names are those that nccl-tests prints and accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/collective.h"
#include "base/result.h"

namespace trestle {

enum class DataType : uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
};
inline constexpr size_t kDataTypes = 12;

enum class ReduceOp : uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };
inline constexpr size_t kReduceOps = 5;

// What all ranks must have alike of an operator of the caller's making (engine/prepare/custom_op.h). Not among the
// enumerators, because no kernel has a loop for them.
inline constexpr ReduceOp kPreMulSum{5};
inline constexpr ReduceOp kUserCommutative{6};
inline constexpr ReduceOp kUserInOrder{7};  // operands stay in rank order
inline constexpr size_t kAllReduceOps = 8;
constexpr bool is_user_defined(ReduceOp op) {
  return op == kUserCommutative || op == kUserInOrder;
}

// Bytes of one element; 0 for a number that is no type.
constexpr size_t size_of(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kFloat8e4m3:
    case DataType::kFloat8e5m2:
      return 1;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64:
      return 8;
  }
  return 0;
}

constexpr bool is_float(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kFloat32 || type == DataType::kFloat64 ||
         type == DataType::kBfloat16 || type == DataType::kFloat8e4m3 || type == DataType::kFloat8e5m2;
}

// For numbers that come from outside (C API, wire).
constexpr bool is_valid(DataType type) {
  return static_cast<size_t>(type) < kDataTypes;
}
constexpr bool is_valid(ReduceOp op) {  // and built in
  return static_cast<size_t>(op) < kReduceOps;
}

// Static strings; "invalid" for a number that has no name.
const char* to_string(DataType type);
const char* to_string(ReduceOp op);
const char* to_string(Collective collective);

// Names as printed by to_string; of collectives also with underscores, as the perf binaries have them (all_reduce).
// Otherwise kInvalidArgument with a sentence that lists the names.
Result<DataType> parse_data_type(std::string_view name);
Result<ReduceOp> parse_reduce_op(std::string_view name);
Result<Collective> parse_collective(std::string_view name);

}  // namespace trestle
