/* Trestle: lines of a program or of a binding in the library's log. trestle.h does not include it. */
#ifndef TRESTLE_LOG_H_
#define TRESTLE_LOG_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The log ----------------------------------------------------------------------------------------------------- */

typedef enum TRESTLE_ANY_INT {
  trestleLogWarn = 2,
  trestleLogInfo = 3 /* of the subsystem INIT */
} trestleLogLevel_t;

/* Writes `text` as one line of the process's log if TRESTLE_DEBUG and TRESTLE_DEBUG_SUBSYS let that level through, with
 * the prefix that all lines have. For bindings of other interfaces, so that what they say stands beside what the library
 * says. Lines are cut at 2 KiB. */
TRESTLE_API trestleResult_t trestleLog(trestleLogLevel_t level, const char* text);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_LOG_H_ */
