/* Trestle: user-defined reduction operators. A part of trestle.h, which includes it. */
#ifndef TRESTLE_OPERATORS_H_
#define TRESTLE_OPERATORS_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- User-defined operators -------------------------------------------------------------------------------------- */

/* When the scalar of trestleRedOpCreatePreMulSum is read. Both are host memory. */
typedef enum TRESTLE_ANY_INT {
  trestleScalarDevice = 0,       /* by each operation, when its stream has come to it. The scalar must stay readable
                                    until the last operation that uses the operator is complete. It may be changed
                                    only while none is under way */
  trestleScalarHostImmediate = 1 /* before the create call returns */
} trestleScalarResidence_t;

/* Makes an operator that multiplies this rank's contribution by *scalar, one element of `type`, rounds it to the
 * type, and adds up as trestleSum does. Only calls of that type may use it. Scalars may differ between ranks.
 *
 * For all operators made here: *op is a number of trestleNumOps or more that no other operator of the process has.
 * It belongs to this rank's communicator, and each rank makes its own. In a call the kind must be the same on all
 * ranks: pre-multiplied sum, user-defined and commutative, or user-defined and not. Calls on other communicators,
 * and calls after its RedOpDestroy, are trestleInvalidArgument. At the latest it ends with its communicator. */
TRESTLE_API trestleResult_t trestleRedOpCreatePreMulSum(trestleRedOp_t* op, void* scalar, trestleDataType_t type,
                                                        trestleScalarResidence_t residence, trestleComm_t comm);

/* Folds k (2 or more) arrays of `count` elements into dst, in their order: dst[i] = s[0][i] op s[1][i] op ... op
 * s[k-1][i]. Returns 0 for success, anything else for failure. `type` is the call's, `context` the one given to
 * RedOpCreate.
 * - dst is the same memory as one of the sources (any of them), or overlaps none: read element i of all sources,
 *   then write dst[i]. All are aligned as the type needs. They are the library's or the users' buffers and must not
 *   be used after the return.
 * - A call gets any piece of the vectors, cut between any two elements. So elements must be independent, and values
 *   that belong together (the two numbers of an affine map, say) must be one element. The library never looks into
 *   an element, whatever its type.
 * - The operator must be associative. Then pieces, brackets and the number of calls make no difference except for
 *   rounding, and they are the same in every run.
 * - The thread that drives the communicator calls it: the caller's, another one that waits, or the library's. There
 *   is one call at a time per communicator, but different communicators may call at the same time. The library waits
 *   for it. So every call that it makes is trestleInvalidUsage and changes nothing, except trestleGetVersion,
 *   trestleGetErrorString and trestleGetLastError. It must not wait for anything, least of all for another thread's
 *   call. While it runs, the communicator's data waits, but this process still hears of failures and answers other
 *   ranks. It may ignore a refused call: only its own return value counts.
 * - A failure return fails the communicator. So does a C++ exception, which ends in the library; the sentence has
 *   its what(). All ranks get trestleReductionFailed, with the rank, the operation and the reason. A rank that had
 *   all it needed for that operation gets it in a later call. */
typedef int (*trestleReduceFunction_t)(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type,
                                       void* context);
/* Makes an operator of a function, for all types. All ranks give functions that do the same, and the same
 * `commutative`. 1: operands may be combined in any order (the same on every rank and in every run). 0: the result
 * is s0 op s1 op ... op sN-1, where sr is rank r's contribution. 0 restricts the algorithms to those that combine
 * neighbours in order. Another algorithm that is requested by name is trestleInvalidArgument, with the names of the
 * allowed ones. With one rank the function is not called.
 *
 * `context` must stay valid until RedOpDestroy and until all calls that use the operator are complete, their persistent
 * requests are freed, and CUDA graphs with such calls are destroyed. */
TRESTLE_API trestleResult_t trestleRedOpCreate(trestleRedOp_t* op, trestleReduceFunction_t function, void* context,
                                               int commutative, trestleComm_t comm);
/* Ends the operator for new calls. Calls that were made before, persistent requests and graphs keep it: this may be
 * called while they run. trestleInvalidArgument: a built-in operator, another communicator's, or one that was destroyed
 * already. */
TRESTLE_API trestleResult_t trestleRedOpDestroy(trestleRedOp_t op, trestleComm_t comm);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_OPERATORS_H_ */
