/* Trestle: reduction operators of the caller's making. A part of trestle.h, which includes it. */
#ifndef TRESTLE_OPERATORS_H_
#define TRESTLE_OPERATORS_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Operators of the caller's making ------------------------------------------------------------------------------------- */

/* When the scalar of trestleRedOpCreatePreMulSum is read. Both are host memory. */
typedef enum TRESTLE_ANY_INT {
  trestleScalarDevice = 0,       /* by each operation, when its stream has come to it: until the last one that uses the operator is
                                    complete the scalar must stay readable, and it is changed only where none is under way */
  trestleScalarHostImmediate = 1 /* before the create call returns */
} trestleScalarResidence_t;

/* Makes an operator that multiplies what this rank contributes by *scalar, one element of `type`, rounds it to the type, and adds up as
 * trestleSum does. Only calls of that type may use it. Scalars may differ between ranks.
 * Of all operators made here: *op is a number of trestleNumOps or more that no other operator of the process has. It belongs to this
 * rank's communicator, and each rank makes its own; what ranks must have alike in a call is the kind (pre-multiplied sum,
 * user-defined and commutative, user-defined and not). Calls on other communicators, and calls after its RedOpDestroy, are
 * trestleInvalidArgument. It goes with its communicator at the latest. */
TRESTLE_API trestleResult_t trestleRedOpCreatePreMulSum(trestleRedOp_t* op, void* scalar, trestleDataType_t type,
                                                        trestleScalarResidence_t residence, trestleComm_t comm);

/* Folds k (2 or more) arrays of `count` elements into dst, in their order: dst[i] = s[0][i] op s[1][i] op ... op s[k-1][i]. Returns 0,
 * or anything else to give up. `type` is the call's, `context` what RedOpCreate was given.
 * - dst is the same memory as one of the sources, whichever, or overlaps none: read element i of all sources, then write dst[i].
 *   All are aligned as the type needs. They are the library's or the users' buffers; nothing of them may be used after the return.
 * - A call brings any piece of the vectors, cut between any two elements: so the elements are independent, and what belongs together
 *   (the two numbers of an affine map, say) has to be one element. Nobody looks at what is in an element, whatever its type.
 * - The operator must be associative; then pieces, brackets and the number of calls make no difference but for rounding, and
 *   they are the same in every run.
 * - It is called by whichever thread drives the communicator: the caller's, another one that waits, or the library's; one at a time
 *   per communicator, at the same time for different ones. The library waits for it. So every call that it makes is trestleInvalidUsage
 *   and changes nothing, except trestleGetVersion, trestleGetErrorString and trestleGetLastError, and it must not wait for anything,
 *   least of all for another thread's call. While it runs, the communicator's data waits, but this process still hears of failures and
 *   answers other ranks. It may ignore a refused call: only its own return value counts.
 * - Giving up, and a C++ exception (which ends in the library, with its what() in the sentence), fail the communicator: all ranks get
 *   trestleReductionFailed, with the rank, the operation and the reason; one that had all it needed for that operation, in a later call. */
typedef int (*trestleReduceFunction_t)(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type,
                                       void* context);
/* Makes an operator of a function, for all types. All ranks give functions that do the same, and the same `commutative`: 1: operands may
 * be combined in any order (the same on every rank and in every run); 0: the result is s0 op s1 op ... op sN-1, where sr is rank r's
 * contribution. That restricts the algorithms to those that combine neighbours in order; one that is asked for by name and does not is
 * trestleInvalidArgument, with the names of those that do. With one rank the function is not called.
 * `context` must stay valid until RedOpDestroy and until all calls that use the operator are complete and their persistent requests
 * freed. */
TRESTLE_API trestleResult_t trestleRedOpCreate(trestleRedOp_t* op, trestleReduceFunction_t function, void* context,
                                               int commutative, trestleComm_t comm);
/* Ends the operator for new calls. Calls that were made before, and persistent requests, keep it: this may be called while they run.
 * trestleInvalidArgument: a built-in operator, another communicator's, or one that was destroyed already. */
TRESTLE_API trestleResult_t trestleRedOpDestroy(trestleRedOp_t op, trestleComm_t comm);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_OPERATORS_H_ */
