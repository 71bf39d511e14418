// The record that defines one perf binary: everything that the driver needs to know about a collective.
//
// Constant data and pure functions; all ranks' threads call them at the same time.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trestle::perf {

class Calls;
struct Options;

// One call, as one rank sees it.
struct Case {
  trestleDataType_t type;
  trestleRedOp_t op;
  int root;
  int nranks;
  int rank;
  size_t count;  // argument of the call
  uint64_t seed;
  int step = 0;  // index among the steps of the collective
};

// Elements of the call and of its buffers, per rank.
struct Shape {
  size_t count;
  size_t send;
  size_t recv;
};

// Where a buffer lies inside the one buffer of an in-place call.
enum class InPlace {
  kStart,  // at the start
  kBlock,  // at block `rank`, rank * count
};

struct Collective {
  trestleCollective_t kind;
  bool sweeps_ops = false;    // the redop column applies
  bool sweeps_roots = false;  // the root column applies
  bool in_place = true;       // false: the in-place half is N/A
  InPlace send_in_place = InPlace::kStart;
  InPlace recv_in_place = InPlace::kStart;
  Shape (*shape)(size_t elements, size_t element_bytes, int nranks);  // elements: of the size that the user requested
  double (*factor)(int nranks);                                       // bus bandwidth over algorithm bandwidth
  void (*fill_send)(const Case&, void* send);                         // writes at most shape.send elements
  size_t (*verified)(const Case&);  // number of elements of recv that must be right on this rank
  void (*fill_expected)(const Case&, size_t first, size_t count, void* out);
  void (*run)(const Case&, const void* send, void* recv, Calls& calls);

  // Rarely needed.
  bool verifies_in_place = true;  // false: no result is right in place, so it is only timed
  const char* op_label = "none";  // of the redop column where it does not apply
  bool predicts = true;           // trestlePredictTime can predict this program's calls
  // Number of calls of `run`, each behind the one before in stream order; null: 1.
  int (*steps)(int nranks) = nullptr;
  size_t (*moved)(const Shape&, int nranks) = nullptr;  // elements that algbw counts; null: those of the larger buffer
  // A sentence if this cannot run with these options (exit code 255), else "". Called before everything else.
  std::string (*check)(const Options&, int nranks) = nullptr;
  // A sentence if there is nothing to measure on this number of ranks (exit code 0), else "".
  std::string (*skips)(int nranks) = nullptr;
  std::vector<std::string> (*summary)(const Options&, int nranks) = nullptr;  // lines before the table; null: none
};

// Whole main function of a perf binary; returns its exit code.
int perf_main(int argc, char** argv, const Collective& collective);

// ---- Parts that several records share

// count elements on every rank, on both sides.
Shape whole_shape(size_t elements, size_t element_bytes, int nranks);
// elements / nranks, rounded down to 16 bytes.
size_t block_count(size_t elements, size_t element_bytes, int nranks);
// One block of block_count elements on one side, and a block for each rank on the other side. Gathering: the receiving
// side has the many blocks. Scattering: the sending side has them.
Shape gathering_shape(size_t elements, size_t element_bytes, int nranks);
Shape scattering_shape(size_t elements, size_t element_bytes, int nranks);

double factor_one(int nranks);
double factor_blocks(int nranks);  // (n-1)/n

// This rank's contribution to a reduction of `elements` elements.
void fill_reduction_send(const Case& c, size_t elements, void* send);
// Elements of the reduced array, starting with `first`.
void fill_reduction_expected(const Case& c, size_t first, size_t count, void* out);
// This rank's data for a collective that copies.
void fill_copy_send(const Case& c, size_t elements, void* send);
// Its first c.count elements.
void fill_own_send(const Case& c, void* send);
// Elements of rank `source`'s data, starting with `first`.
void fill_copy_expected(const Case& c, int source, size_t first, size_t count, void* out);
// A receive buffer of blocks of c.count elements. Block p is from rank p's data, starting there at `start`.
void fill_blocks_expected(const Case& c, size_t start, size_t first, size_t count, void* out);
// Blocks of c.count elements as above, with start 0.
void fill_gathered_expected(const Case& c, size_t first, size_t count, void* out);

}  // namespace trestle::perf
