// The record that makes one perf binary: everything that the driver has to know about a collective.
//
// Constant data and pure functions; the driver calls them from every rank's thread at once.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trestle::perf {

struct Options;

// One call, as one rank sees it.
struct Case {
  trestleDataType_t type;
  trestleRedOp_t op;
  int root;
  int nranks;
  int rank;
  size_t count;  // the argument of the call
  uint64_t seed;
  int step = 0;  // of those that the collective is made of
};

// Elements of the call and of its buffers, per rank.
struct Shape {
  size_t count;
  size_t send;
  size_t recv;
};

// Where a buffer lies inside the one buffer of an in-place call.
enum class InPlace {
  kStart,  // at its start
  kBlock,  // at block `rank`, rank * count
};

struct Collective {
  trestleCollective_t kind;
  bool sweeps_ops;    // the redop column is real
  bool sweeps_roots;  // the root column is real
  bool in_place;      // false: the in-place half is N/A
  InPlace send_in_place;
  InPlace recv_in_place;
  Shape (*shape)(size_t elements, size_t element_bytes, int nranks);  // elements: of the size that the user asked for
  double (*factor)(int nranks);                                       // bus bandwidth over algorithm bandwidth
  void (*fill_send)(const Case&, void* send);                         // writes shape.send elements
  size_t (*verified)(const Case&);  // elements of recv that must be right on this rank
  void (*fill_expected)(const Case&, size_t first, size_t count, void* out);
  trestleResult_t (*run)(const Case&, const void* send, void* recv, trestleComm_t, trestleStream_t);

  // What most collectives do not need; null: as the comment says.
  bool verifies_in_place = true;                        // false: in place no result is right, it is timed only
  const char* op_label = "none";                        // of the redop column where it is not real
  bool predicts = true;                                 // trestlePredictTime knows `kind` as this program runs it
  int (*steps)(int nranks) = nullptr;                   // calls of `run`, each in stream order after the one before; 1
  size_t (*moved)(const Shape&, int nranks) = nullptr;  // elements that algbw counts; those of the larger buffer
  // A sentence where this cannot be run with these options (exit code 255), else "". Before anything else is called.
  std::string (*check)(const Options&, int nranks) = nullptr;
  // A sentence where there is nothing to measure on so many ranks (exit code 0), else "".
  std::string (*skips)(int nranks) = nullptr;
  std::vector<std::string> (*summary)(const Options&, int nranks) = nullptr;  // lines before the table; none
};

// Whole main function of a perf binary; returns its exit code.
int perf_main(int argc, char** argv, const Collective& collective);

// ---- Parts that several records share
// -----------------------------------------------------------------------------------

// count on every rank, on both sides.
Shape whole_shape(size_t elements, size_t element_bytes, int nranks);
// elements / nranks, rounded down to 16 bytes.
size_t block_count(size_t elements, size_t element_bytes, int nranks);

double factor_one(int nranks);
double factor_blocks(int nranks);  // (n-1)/n

// This rank's contribution to a reduction of `elements` elements.
void fill_reduction_send(const Case& c, size_t elements, void* send);
// Elements of the reduced array, from `first`.
void fill_reduction_expected(const Case& c, size_t first, size_t count, void* out);
// This rank's data of a collective that copies.
void fill_copy_send(const Case& c, size_t elements, void* send);
// Elements of rank `source`'s data, from `first`.
void fill_copy_expected(const Case& c, int source, size_t first, size_t count, void* out);
// A receive buffer of blocks of c.count elements, block p from rank p's data, which starts there at `start`.
void fill_blocks_expected(const Case& c, size_t start, size_t first, size_t count, void* out);

}  // namespace trestle::perf
