/* Memory of the program's own making that ranks of one host can map: a memfd, registered. What it sends from there is
 * read where it lies, as statistics show.
 *
 *   trestle run -n 2 -- ./registered_memory
 */
#define _GNU_SOURCE
#include "must.h"

#include <sys/mman.h>
#include <unistd.h>

enum { kCount = 1 << 20 };

int main(void) {
  const size_t size = kCount * sizeof(float);
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  void* handle;
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);

  const int fd = memfd_create("example", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
  float* const data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  EXPECT(data != MAP_FAILED);
  MUST(trestleCommRegister(comm, data, size, &handle), comm); /* from now on the memfd cannot shrink */
  close(fd);

  for (int i = 0; i < kCount; ++i) data[i] = (float)(rank + 1);
  MUST(trestleAllReduce(data, data, kCount, trestleFloat32, trestleSum, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
  for (int i = 0; i < kCount; ++i) EXPECT(data[i] == (float)(nranks * (nranks + 1) / 2));

  MUST(trestleCommGetStats(comm, &stats), comm);
  printf("rank %d: sent %llu bytes, of which %llu were read where they lay\n", rank,
         (unsigned long long)stats.dimension[0].bytesSent, (unsigned long long)stats.dimension[0].bytesMapped);
  MUST(trestleCommDeregister(comm, handle), comm); /* before munmap */
  munmap(data, size);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
