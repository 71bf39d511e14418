/* Trestle: persistent requests of whole collectives. A part of trestle.h, which includes it. */
#ifndef TRESTLE_PERSISTENT_H_
#define TRESTLE_PERSISTENT_H_

#include "trestle/trestle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Persistent requests of whole collectives -------------------------------------------------------------------- */

/* The arguments of the call of that name, checked and planned once; arrays are read before Init returns. Each
 * RequestStart then runs the whole collective on the same buffers, in the stream given here, and counts as a call on
 * the communicator at that point. The buffers are in use from Start until the collective is complete (RequestWait,
 * or RequestTest with done 1). Only then may it be started again. AllReduceFinish on such a request is
 * trestleInvalidUsage. */
TRESTLE_API trestleResult_t trestleAllReduceInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                                 trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                                 trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleReduceScatterInit(const void* send, void* recv, size_t recvcount, trestleDataType_t type,
                                                     trestleRedOp_t op, trestleComm_t comm, trestleStream_t stream,
                                                     trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleAllGatherInit(const void* send, void* recv, size_t sendcount, trestleDataType_t type,
                                                 trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleBroadcastInit(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                                 trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleReduceInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                              trestleRedOp_t op, int root, trestleComm_t comm, trestleStream_t stream,
                                              trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleAllToAllInit(const void* send, void* recv, size_t count, trestleDataType_t type,
                                                trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleGatherInit(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                              trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleScatterInit(const void* send, void* recv, size_t count, trestleDataType_t type, int root,
                                               trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleBarrierInit(trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleAllGatherVInit(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                                  const size_t* displs, trestleDataType_t type, trestleComm_t comm,
                                                  trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleReduceScatterVInit(const void* send, void* recv, const size_t* recvcounts,
                                                      trestleDataType_t type, trestleRedOp_t op, trestleComm_t comm,
                                                      trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleAllToAllVInit(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                                                 const size_t* recvcounts, const size_t* rdispls, trestleDataType_t type,
                                                 trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleGatherVInit(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                               const size_t* displs, trestleDataType_t type, int root, trestleComm_t comm,
                                               trestleStream_t stream, trestleRequest_t* request);
TRESTLE_API trestleResult_t trestleScatterVInit(const void* send, const size_t* sendcounts, const size_t* displs, void* recv,
                                                size_t recvcount, trestleDataType_t type, int root, trestleComm_t comm,
                                                trestleStream_t stream, trestleRequest_t* request);

#ifdef __cplusplus
}
#endif

#endif /* TRESTLE_PERSISTENT_H_ */
