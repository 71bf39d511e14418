/* The package's test builds this with an installed Trestle and runs it as two ranks. Checks an all-reduce. */
#include <stdio.h>
#include <trestle/trestle.h>

enum { kCount = 1000 };

int main(void) {
  static int32_t data[kCount];
  const trestleUniqueId launcher = {{0}};
  trestleComm_t comm = NULL;
  int rank, nranks, version;

  if (trestleGetVersion(&version) != trestleSuccess || version != TRESTLE_VERSION_CODE) {
    fprintf(stderr, "the library that runs is not the one of the header\n");
    return 1;
  }
  if (trestleLauncherInfo(&rank, &nranks, NULL) != trestleSuccess) return 1;
  for (int i = 0; i < kCount; ++i) data[i] = (rank + 1) * i;
  if (trestleCommInitRank(&comm, nranks, launcher, rank) != trestleSuccess ||
      trestleAllReduce(data, data, kCount, trestleInt32, trestleSum, comm, NULL) != trestleSuccess ||
      trestleCommSynchronize(comm) != trestleSuccess) {
    fprintf(stderr, "%s\n", trestleGetLastError(comm));
    return 1;
  }
  for (int i = 0; i < kCount; ++i) {
    if (data[i] != nranks * (nranks + 1) / 2 * i) return 1;
  }
  printf("rank %d of %d: the sum is right\n", rank, nranks);
  return trestleCommDestroy(comm) == trestleSuccess ? 0 : 1;
}
