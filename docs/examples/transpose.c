/* All-to-all: a matrix whose rows are spread over the ranks is transposed. Block p of what a rank sends is the part of
 * its rows that rank p will own.
 *
 *   trestle run -n 4 -- ./transpose
 */
#include "must.h"

enum { kRows = 8, kMostRanks = 16 }; /* rows per rank */

int main(void) {
  static int32_t rows[kRows][kMostRanks * kRows], columns[kRows][kMostRanks * kRows];
  static int32_t send[kMostRanks][kRows][kRows], recv[kMostRanks][kRows][kRows];
  int rank, nranks;
  const trestleComm_t comm = join_job(&rank, &nranks, NULL);
  EXPECT(nranks <= kMostRanks);

  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < nranks * kRows; ++j) rows[i][j] = 1000 * (rank * kRows + i) + j;
  }
  for (int p = 0; p < nranks; ++p) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kRows; ++j) send[p][j][i] = rows[i][p * kRows + j];
    }
  }
  MUST(trestleAllToAll(send, recv, kRows * kRows, trestleInt32, comm, NULL), comm);
  MUST(trestleCommSynchronize(comm), comm);
  for (int p = 0; p < nranks; ++p) {
    for (int j = 0; j < kRows; ++j) {
      for (int i = 0; i < kRows; ++i) columns[j][p * kRows + i] = recv[p][j][i];
    }
  }
  for (int j = 0; j < kRows; ++j) {
    for (int i = 0; i < nranks * kRows; ++i) EXPECT(columns[j][i] == 1000 * i + rank * kRows + j);
  }
  printf("rank %d has its rows of the transposed matrix\n", rank);
  MUST(trestleCommDestroy(comm), NULL);
  return 0;
}
