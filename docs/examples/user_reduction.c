/* A reduction of one's own that is not commutative: every rank has a step x -> a x + b for each of many numbers, and
 * all ranks get the steps of all ranks one after the other, rank 0's first, as one step.
 *
 *   trestle run -n 4 -- ./user_reduction
 */
#include "must.h"

enum { kCount = 1000 };

/* Both numbers in one element, because the library may cut between any two elements. Arithmetic modulo 2^32. */
static uint64_t step(uint32_t a, uint32_t b) {
  return (uint64_t)a << 32 | b;
}

static uint64_t then(uint64_t first, uint64_t second) {
  const uint32_t a = (uint32_t)(second >> 32), b = (uint32_t)second;
  return step(a * (uint32_t)(first >> 32), a * (uint32_t)first + b);
}

/* k sources into dst, which may be one of them: so all sources of an element are read before it is written. */
static int compose(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void* context) {
  (void)context;
  if (type != trestleUint64) return 1; /* gives up: all ranks get trestleReductionFailed */
  for (size_t i = 0; i < count; ++i) {
    uint64_t all = ((const uint64_t*)sources[0])[i];
    for (int s = 1; s < k; ++s) all = then(all, ((const uint64_t*)sources[s])[i]);
    ((uint64_t*)dst)[i] = all;
  }
  return 0;
}

int main(void) {
  static uint64_t steps[kCount], all[kCount];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);
  trestleRedOp_t in_order;

  MUST(trestleRedOpCreate(&in_order, compose, NULL, /* commutative */ 0, comm), comm);
  for (uint32_t i = 0; i < kCount; ++i) steps[i] = step(2 * (uint32_t)rank + 3, i);
  MUST(trestleAllReduce(steps, all, kCount, trestleUint64, in_order, comm, NULL), comm);
  MUST(trestleRedOpDestroy(in_order, comm), comm); /* the call that was made keeps it */
  MUST(trestleCommSynchronize(comm), comm);

  for (uint32_t i = 0; i < kCount; ++i) {
    uint64_t expected = step(3, i);
    for (uint32_t r = 1; r < (uint32_t)nranks; ++r) expected = then(expected, step(2 * r + 3, i));
    EXPECT(all[i] == expected);
  }

  /* The mean, weighted: each rank multiplies what it gives by its own weight, and the sum is of the products. */
  float weight = (float)(rank + 1), value = 10.0f * (float)rank, sum = 0;
  trestleRedOp_t weighted;
  MUST(trestleRedOpCreatePreMulSum(&weighted, &weight, trestleFloat32, trestleScalarHostImmediate, comm), comm);
  MUST(trestleAllReduce(&value, &sum, 1, trestleFloat32, weighted, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
  float expected = 0;
  for (int r = 0; r < nranks; ++r) expected += 10.0f * (float)r * (float)(r + 1);
  EXPECT(sum == expected);
  MUST(trestleRedOpDestroy(weighted, comm), comm);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
