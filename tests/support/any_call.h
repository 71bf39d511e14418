// Any collective of the public header as a value: their argument lists stand here alone.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>

// A collective on one rank. What it does not take is not read.
struct AnyCall {
  trestleCollective_t collective = trestleCollAllReduce;
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;  // elements; of the collectives with blocks of unequal lengths: of this rank's own block
  trestleDataType_t type = trestleFloat32;
  trestleRedOp_t op = trestleSum;
  int root = 0;
  // By rank. NULL displacements: one block behind the other.
  const size_t* sendcounts = nullptr;
  const size_t* sdispls = nullptr;
  const size_t* recvcounts = nullptr;
  const size_t* rdispls = nullptr;
};

trestleResult_t start(const AnyCall& call, trestleComm_t comm, trestleStream_t stream);
// Makes a persistent request for it.
trestleResult_t init(const AnyCall& call, trestleComm_t comm, trestleStream_t stream, trestleRequest_t* request);
