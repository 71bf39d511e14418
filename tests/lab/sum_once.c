/* Ranks that make one communicator, add up their numbers from 1 and print the sum, for the tests of where ranks meet.
 * With an argument they meet by a unique id: rank 0 makes it and writes it to the file of that name, which the others
 * await. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <trestle/trestle.h>
#include <unistd.h>

static int complain(trestleResult_t result, trestleComm_t comm) {
  if (result != trestleSuccess) fprintf(stderr, "%s: %s\n", trestleGetErrorString(result), trestleGetLastError(comm));
  return result != trestleSuccess;
}

static int write_id(const char* path, const trestleUniqueId* id) {
  char part[4096];
  snprintf(part, sizeof part, "%s.part", path);
  FILE* file = fopen(part, "wb");
  if (file == NULL || fwrite(id, sizeof *id, 1, file) != 1 || fclose(file) != 0) return 1;
  return rename(part, path) != 0;
}

static int await_id(const char* path, trestleUniqueId* id) {
  while (access(path, R_OK) != 0) sched_yield();
  FILE* file = fopen(path, "rb");
  return file == NULL || fread(id, sizeof *id, 1, file) != 1 || fclose(file) != 0;
}

int main(int argc, char** argv) {
  int rank = -1, ranks = -1;
  trestleUniqueId id;
  trestleComm_t comm = NULL;
  memset(&id, 0, sizeof id);
  if (complain(trestleLauncherInfo(&rank, &ranks, NULL), NULL)) return 1;
  if (argc > 1 && rank == 0 && (complain(trestleGetUniqueId(&id), NULL) || write_id(argv[1], &id))) return 1;
  if (argc > 1 && rank != 0 && await_id(argv[1], &id)) return 1;
  int64_t number = rank + 1;
  if (complain(trestleCommInitRank(&comm, ranks, id, rank), NULL)) return 1;
  if (complain(trestleAllReduce(&number, &number, 1, trestleInt64, trestleSum, comm, NULL), comm)) return 1;
  if (complain(trestleCommSynchronize(comm), comm)) return 1;
  if (complain(trestleCommDestroy(comm), NULL)) return 1;
  printf("the sum is %d\n", (int)number);
  return 0;
}
