// NCCL's access to its run-time parameters, since 2.30. None of NCCL's parameters exists here.
#include "bindings/nccl/answers.h"

namespace trestle::nccl {

namespace {

constexpr const char* kWhere = "`trestle env` prints the variables of this library with their values";

Result no_parameter(const char* function) {
  return refuse(Result::kInvalidUsage, "%s: parameters of NCCL have no meaning here: %s", function, kWhere);
}

}  // namespace

NCCL_API(Result, ParamBind, (void**, const char*)) {
  return no_parameter("ParamBind");
}

NCCL_API(Result, ParamGetI8, (void*, int8_t*)) {
  return no_parameter("ParamGetI8");
}

NCCL_API(Result, ParamGetI16, (void*, int16_t*)) {
  return no_parameter("ParamGetI16");
}

NCCL_API(Result, ParamGetI32, (void*, int32_t*)) {
  return no_parameter("ParamGetI32");
}

NCCL_API(Result, ParamGetI64, (void*, int64_t*)) {
  return no_parameter("ParamGetI64");
}

NCCL_API(Result, ParamGetU8, (void*, uint8_t*)) {
  return no_parameter("ParamGetU8");
}

NCCL_API(Result, ParamGetU16, (void*, uint16_t*)) {
  return no_parameter("ParamGetU16");
}

NCCL_API(Result, ParamGetU32, (void*, uint32_t*)) {
  return no_parameter("ParamGetU32");
}

NCCL_API(Result, ParamGetU64, (void*, uint64_t*)) {
  return no_parameter("ParamGetU64");
}

NCCL_API(Result, ParamGetStr, (void*, const char**)) {
  return no_parameter("ParamGetStr");
}

NCCL_API(Result, ParamGet, (void*, void*, int, int*)) {
  return no_parameter("ParamGet");
}

NCCL_API(Result, ParamGetParameter, (const char*, const char**, int*)) {
  return no_parameter("ParamGetParameter");
}

NCCL_API(Result, ParamGetAllParameterKeys, (const char*** table, int* tableLen)) {
  static const char* none[] = {nullptr};
  if (table == nullptr || tableLen == nullptr) {
    return refuse(Result::kInvalidArgument, "ParamGetAllParameterKeys: table and tableLen must not be NULL");
  }
  *table = none;
  *tableLen = 0;
  return Result::kSuccess;
}

NCCL_API(void, ParamDumpAll, (void)) {
  remark("ParamDumpAll: there are no parameters of NCCL: %s", kWhere);
}

}  // namespace trestle::nccl
