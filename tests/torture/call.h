// One collective call of a program, and the elements that it moves on each rank. Pure functions of the call, so every
// rank knows what the others send and receive.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "torture/elements.h"

namespace torture {

// The kind of memory that holds a buffer.
enum class Memory { kOrdinary, kAllocated, kRegistered };
inline constexpr int kMemories = 3;
inline constexpr int kAnyStream = -1;

struct Call {
  int id = 0;  // unique in the program
  trestleCollective_t collective = trestleCollAllReduce;
  int comm = 0;    // index in the program's communicators
  int stream = 0;  // 0: NULL, the communicator's own stream; kAnyStream: another one on each rank
  trestleDataType_t type = trestleFloat32;
  Op op = Op::kSum;
  bool exact = true;
  int root = 0;  // for a message: the sender
  int peer = 0;  // for a message: the receiver
  size_t count = 0;
  std::vector<size_t> counts;  // v-variants: per rank; all-to-all-v: [from * ranks + to]
  bool gaps = false;           // v-variants: displacements with gaps, blocks in any order
  int in_place = 0;            // 0: no rank, 1: all, 2: some
  int config = 0;              // call configuration, 0: none
  // Sends the result of the all-reduce with the same type, operator and seed, which every rank has.
  bool of_result = false;
  uint64_t seed = 0;
};

bool is_vector(trestleCollective_t collective);
bool is_rooted(trestleCollective_t collective);
bool reduces(trestleCollective_t collective);
std::string to_string(const Call& call);
Values values_of(const Call& call, int ranks);

// `count` elements at `at` of a buffer, equal to those from element `start` of a source: a rank's input or the
// reduction.
struct Piece {
  size_t at;
  size_t count;
  int source;
  size_t start;
};
// One side of a call on one rank. Extents and positions are in elements.
struct Side {
  bool used = false;  // false: the pointer may be NULL
  size_t extent = 0;
  std::vector<Piece> pieces;
};
struct Shape {
  Side send;
  Side recv;
  size_t send_at = 0;  // in place: the positions of the sides in the common buffer
  size_t recv_at = 0;
  std::vector<size_t> sendcounts, sdispls, recvcounts, rdispls;
  const size_t* sdispls_or_null() const { return sdispls.empty() ? nullptr : sdispls.data(); }
  const size_t* rdispls_or_null() const { return rdispls.empty() ? nullptr : rdispls.data(); }
};
Shape shape_of(const Call& call, int rank, int ranks);
bool in_place_on(const Call& call, int rank);

// The largest number of bytes that any rank needs for one side.
size_t largest_bytes(const Call& call, int ranks);

}  // namespace torture
