// How much each rank sends to each other one in alltoallv_perf: blocks that grow with the distance between ranks, or a
// matrix from a file.
//
// Value type, made once in main; pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trestle::perf {

struct Traffic {
  double spread = 1;           // 0: equal blocks; 1: proportional to (to - from) mod ranks; between: a mixture
  std::vector<size_t> matrix;  // bytes; row: from, column: to; empty: use the distance
  int ranks = 0;               // of the matrix
  std::string problem;         // a sentence if a variable or the file cannot be used
};

// Reads the texts of ALLTOALLV_SPREAD, ALLTOALLV_MATRIX_FILE and ALLTOALLV_MATRIX_SCALE; "": not set.
Traffic read_traffic(const std::string& spread, const std::string& matrix_file, const std::string& scale);

// Elements from one rank to another, in a call in which every rank sends `count` * nranks elements in total. Blocks are
// rounded down to multiples of 16 bytes (a matrix's blocks: to whole elements).
size_t block_elements(const Traffic& traffic, int from, int to, int nranks, size_t count, size_t element_bytes);

// The largest number of elements that a rank sends or receives.
size_t most_elements(const Traffic& traffic, int nranks, size_t count, size_t element_bytes);

// Lines for people: what each rank sends and receives, in bytes.
std::vector<std::string> traffic_summary(const Traffic& traffic, int nranks, size_t count, size_t element_bytes);

}  // namespace trestle::perf
