// Values of elements for tests of the public API, and the expected results. Every partial sum of the inputs is exactly
// representable, so any order of additions gives the same bits. Pure functions of (seed, rank, index), any thread.
//
// Sums: element i of every rank is a small integer times one power of two per element. Products: one rank of each
// element gives a full mantissa, all others +-1 and one of them 2 or 1/2. Maxima: random finite values. Integers:
// random bits, arithmetic wraps. Averages are the exact sum divided once; those of 8- and 16-bit floats are the exact
// sum of the contributions' shares, which are rounded once.
#pragma once

#include <trestle/trestle.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "support/elements.h"

namespace api {

using elements::decode;
using elements::encode;
using elements::is_float;
using elements::load;
using elements::size_of;
using elements::store;
std::string name(trestleDataType_t type);
std::string name(trestleRedOp_t op);

// `count` elements from element `first` of rank `rank`'s input.
void fill_bits(void* to, trestleDataType_t type, uint64_t seed, int rank, size_t first, size_t count);
void fill_input(void* to, trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int rank, int ranks, size_t first,
                size_t count);
void fill_reduced(void* to, trestleDataType_t type, trestleRedOp_t op, uint64_t seed, int ranks, size_t first,
                  size_t count);

// The difference of two elements in units in the last place; 0: the same bits.
uint64_t distance(trestleDataType_t type, uint64_t a, uint64_t b);
// The largest allowed difference of an element: 2 units in the last place for the average of
// float32 and float64, else 0.
uint64_t tolerance(trestleDataType_t type, trestleRedOp_t op);

}  // namespace api
