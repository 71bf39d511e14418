/* Memory that ranks of one host can map: what they exchange is read where it lies. Ordinary memory works too; it is
 * copied once more.
 *
 *   trestle run -n 2 -- ./mapped_memory
 */
#include "must.h"

enum { kCount = 1 << 20 };

int main(void) {
  void* memory;
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  MUST(trestleMemAlloc(&memory, kCount * sizeof(float)), NULL);
  float* const data = memory;
  for (int i = 0; i < kCount; ++i) EXPECT(data[i] == 0); /* it comes zeroed */
  for (int i = 0; i < kCount; ++i) data[i] = (float)(rank + 1);
  MUST(trestleAllReduce(data, data, kCount, trestleFloat32, trestleProd, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);

  float product = 1;
  for (int r = 1; r <= nranks; ++r) product *= (float)r;
  for (int i = 0; i < kCount; ++i) EXPECT(data[i] == product);
  printf("rank %d: the product is %g\n", rank, product);
  MUST(trestleCommDestroy(comm), NULL);
  MUST(trestleMemFree(memory), NULL); /* after the communicator: nobody reads it any more */
  return 0;
}
