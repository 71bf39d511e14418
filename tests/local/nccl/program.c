/* A program as NCCL's users write them, except that its buffers are host memory: one thread for all ranks, groups,
 * messages. */
#include <nccl.h>
#include <stdio.h>
#include <string.h>

#define MUST(call)                                                                                \
  do {                                                                                            \
    ncclResult_t result = (call);                                                                 \
    if (result != ncclSuccess) {                                                                  \
      fprintf(stderr, "%s: %s: %s\n", #call, ncclGetErrorString(result), ncclGetLastError(NULL)); \
      return 1;                                                                                   \
    }                                                                                             \
  } while (0)
#define EXPECT(condition)                                                   \
  do {                                                                      \
    if (!(condition)) {                                                     \
      fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
      return 1;                                                             \
    }                                                                       \
  } while (0)

enum { kRanks = 4, kCount = 1000 };

int main(void) {
  static float sent[kRanks][kCount], received[kRanks][kCount];
  const int devices[kRanks] = {0, 1, 2, 3};
  ncclComm_t comms[kRanks];
  int version = 0;
  MUST(ncclGetVersion(&version));
  EXPECT(version == 23007);
  MUST(ncclCommInitAll(comms, kRanks, devices));
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < kCount; ++i) sent[r][i] = (float)(r + i);
  }

  MUST(ncclGroupStart());
  for (int r = 0; r < kRanks; ++r)
    MUST(ncclAllReduce(sent[r], received[r], kCount, ncclFloat, ncclSum, comms[r], NULL));
  MUST(ncclGroupEnd());
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < kCount; ++i) EXPECT(received[r][i] == (float)(0 + 1 + 2 + 3 + kRanks * i));
  }

  /* Messages around a ring. */
  MUST(ncclGroupStart());
  for (int r = 0; r < kRanks; ++r) {
    MUST(ncclSend(sent[r], kCount, ncclFloat, (r + 1) % kRanks, comms[r], NULL));
    MUST(ncclRecv(received[r], kCount, ncclFloat, (r + kRanks - 1) % kRanks, comms[r], NULL));
  }
  MUST(ncclGroupEnd());
  for (int r = 0; r < kRanks; ++r) EXPECT(memcmp(received[r], sent[(r + kRanks - 1) % kRanks], sizeof sent[0]) == 0);

  for (int r = 0; r < kRanks; ++r) MUST(ncclCommDestroy(comms[r]));
  printf("%d ranks of one thread\n", kRanks);
  return 0;
}
