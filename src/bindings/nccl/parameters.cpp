// NCCL's access to its run-time parameters, since 2.30. None of NCCL's parameters exists here.
#include "bindings/nccl/answers.h"

namespace trestle::nccl {

namespace {

constexpr const char* kNoParameters =
    "parameters of NCCL have no meaning here: `trestle env` prints the variables of this library with their values";

}  // namespace

NCCL_LACKS(ParamBind, (void**, const char*), kNoParameters)
NCCL_LACKS(ParamGetI8, (void*, int8_t*), kNoParameters)
NCCL_LACKS(ParamGetI16, (void*, int16_t*), kNoParameters)
NCCL_LACKS(ParamGetI32, (void*, int32_t*), kNoParameters)
NCCL_LACKS(ParamGetI64, (void*, int64_t*), kNoParameters)
NCCL_LACKS(ParamGetU8, (void*, uint8_t*), kNoParameters)
NCCL_LACKS(ParamGetU16, (void*, uint16_t*), kNoParameters)
NCCL_LACKS(ParamGetU32, (void*, uint32_t*), kNoParameters)
NCCL_LACKS(ParamGetU64, (void*, uint64_t*), kNoParameters)
NCCL_LACKS(ParamGetStr, (void*, const char**), kNoParameters)
NCCL_LACKS(ParamGet, (void*, void*, int, int*), kNoParameters)
NCCL_LACKS(ParamGetParameter, (const char*, const char**, int*), kNoParameters)

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
  remark("ParamDumpAll: %s", kNoParameters);
}

}  // namespace trestle::nccl
