/* Compiles the header as C99 and takes the address of every function that it declares. */
#include <stdio.h>
#include <trestle/compress.h>
#include <trestle/gradient.h>
#include <trestle/log.h>
#include <trestle/trestle.h>

typedef void (*function_t)(void);

int main(void) {
  static const function_t functions[] = {
      (function_t)trestleAllGather,
      (function_t)trestleAllReduce,
      (function_t)trestleAllReduceFinish,
      (function_t)trestleAllReduceStartInit,
      (function_t)trestleAllReduceInit,
      (function_t)trestleAllReduceStart,
      (function_t)trestleAllToAll,
      (function_t)trestleBarrier,
      (function_t)trestleBroadcast,
      (function_t)trestleCommAbort,
      (function_t)trestleCommCount,
      (function_t)trestleCommDeregister,
      (function_t)trestleCommDestroy,
      (function_t)trestleCommFinalize,
      (function_t)trestleCommGetAsyncError,
      (function_t)trestleCommGetStats,
      (function_t)trestleCommGetRailStats,
      (function_t)trestleCommInitAll,
      (function_t)trestleCommInitAllConfig,
      (function_t)trestleCommInitRank,
      (function_t)trestleCommInitRankConfig,
      (function_t)trestleCommMemStats,
      (function_t)trestleCommRegister,
      (function_t)trestleCommSynchronize,
      (function_t)trestleCommUserRank,
      (function_t)trestleEventCreate,
      (function_t)trestleEventDestroy,
      (function_t)trestleEventNotify,
      (function_t)trestleEventQuery,
      (function_t)trestleEventRecord,
      (function_t)trestleEventSynchronize,
      (function_t)trestleGetErrorString,
      (function_t)trestleGetLastError,
      (function_t)trestleGetUniqueId,
      (function_t)trestleGetVersion,
      (function_t)trestleGradBatches,
      (function_t)trestleGradCreate,
      (function_t)trestleGradDestroy,
      (function_t)trestleGradDrain,
      (function_t)trestleGradGetStats,
      (function_t)trestleGradMeasureLoss,
      (function_t)trestleGradPlan,
      (function_t)trestleGradPlanJson,
      (function_t)trestleGradProfileBegin,
      (function_t)trestleGradProfileEnd,
      (function_t)trestleGradProfileJson,
      (function_t)trestleGradReady,
      (function_t)trestleGradRegister,
      (function_t)trestleGradSetLinkRatios,
      (function_t)trestleGradSetLoss,
      (function_t)trestleGradSetTimes,
      (function_t)trestleGradSimulate,
      (function_t)trestleGradStepEnd,
      (function_t)trestleGradSynchronize,
      (function_t)trestleGradTraceBegin,
      (function_t)trestleGradTraceJson,
      (function_t)trestleGradWaitParam,
      (function_t)trestleGroupEnd,
      (function_t)trestleGroupStart,
      (function_t)trestleLauncherInfo,
      (function_t)trestleLog,
      (function_t)trestleMemAlloc,
      (function_t)trestleMemFree,
      (function_t)trestlePredictTime,
      (function_t)trestleRecv,
      (function_t)trestleRedOpCreate,
      (function_t)trestleRedOpCreatePreMulSum,
      (function_t)trestleRedOpDestroy,
      (function_t)trestleReduce,
      (function_t)trestleReduceScatter,
      (function_t)trestleRequestFree,
      (function_t)trestleRequestStart,
      (function_t)trestleRequestTest,
      (function_t)trestleRequestWait,
      (function_t)trestleSend,
      (function_t)trestleShardRanges,
      (function_t)trestleStreamCreate,
      (function_t)trestleStreamDestroy,
      (function_t)trestleStreamQuery,
      (function_t)trestleStreamSynchronize,
      (function_t)trestleStreamWaitEvent,
      (function_t)trestleAllReduceTopK,
      (function_t)trestleTopKChooseRatio,
      (function_t)trestleTopKCreate,
      (function_t)trestleTopKDestroy,
      (function_t)trestleTopKFit,
      (function_t)trestleTopKGetStats,
      (function_t)trestleTopKSetRatio,
  };
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  trestleCommRailStats_t rails = TRESTLE_RAIL_STATS_INITIALIZER;
  trestleGradConfig_t grad_config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  trestleGradStats_t grad_stats = TRESTLE_GRAD_STATS_INITIALIZER;
  trestleTopKConfig_t top_k_config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
  trestleTopKStats_t top_k_stats = TRESTLE_TOP_K_STATS_INITIALIZER;
  trestleUniqueId id = {{0}};
  int version = 0;
  size_t i = 0;
  for (i = 0; i < sizeof functions / sizeof functions[0]; ++i) {
    if (functions[i] == NULL) return 1;
  }
  if (config.size != sizeof config || config.magic != TRESTLE_CONFIG_MAGIC || sizeof id != TRESTLE_UNIQUE_ID_BYTES)
    return 1;
  if (stats.size != sizeof stats || stats.magic != TRESTLE_COMM_STATS_MAGIC) return 1;
  if (rails.size != sizeof rails || rails.magic != TRESTLE_RAIL_STATS_MAGIC) return 1;
  if (rails.rowSize != sizeof(trestleRailStats_t) || rails.capacity != 0) return 1;
  if (grad_config.size != sizeof grad_config || grad_config.magic != TRESTLE_GRAD_CONFIG_MAGIC) return 1;
  if (grad_stats.size != sizeof grad_stats || grad_stats.magic != TRESTLE_GRAD_STATS_MAGIC) return 1;
  if (top_k_config.size != sizeof top_k_config || top_k_config.magic != TRESTLE_TOP_K_CONFIG_MAGIC) return 1;
  if (top_k_config.compressWeight != 0 || top_k_config.gainWeight != 0.4) return 1;
  if (top_k_stats.size != sizeof top_k_stats || top_k_stats.magic != TRESTLE_TOP_K_STATS_MAGIC) return 1;
  if (trestleGetVersion(&version) != trestleSuccess || version != TRESTLE_VERSION_CODE) return 1;
  for (i = 0; i <= trestleNumResults; ++i) {
    if (trestleGetErrorString((trestleResult_t)i) == NULL) return 1;
  }
  printf("%lu functions\n", (unsigned long)(sizeof functions / sizeof functions[0]));
  return 0;
}
