// Loads and stores of the kernels: packs of 16 bytes, and single elements of any alignment.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cuda/parameters.h"

namespace trestle::kernels {

__device__ inline uint64_t thread_of_grid() {
  return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline uint64_t threads_of_grid() {
  return static_cast<uint64_t>(gridDim.x) * blockDim.x;
}

// Every source is read once, so it need not stay in the caches.
__device__ inline uint4 load_pack(const unsigned char* from, uint64_t pack) {
  return __ldcs(reinterpret_cast<const uint4*>(from) + pack);
}
__device__ inline void store_pack(unsigned char* to, uint64_t pack, uint4 value) {
  reinterpret_cast<uint4*>(to)[pack] = value;
}

template <class Stored>
__device__ Stored load_one(const void* from, uint64_t index, bool aligned) {
  if (aligned) return static_cast<const Stored*>(from)[index];
  const auto* const bytes = static_cast<const unsigned char*>(from) + index * sizeof(Stored);
  unsigned char copied[sizeof(Stored)];
#pragma unroll
  for (uint32_t i = 0; i < sizeof(Stored); ++i) copied[i] = bytes[i];
  Stored stored;
  memcpy(&stored, copied, sizeof(Stored));
  return stored;
}

template <class Stored>
__device__ void store_one(void* to, uint64_t index, Stored stored, bool aligned) {
  if (aligned) {
    static_cast<Stored*>(to)[index] = stored;
    return;
  }
  auto* const bytes = static_cast<unsigned char*>(to) + index * sizeof(Stored);
  unsigned char copied[sizeof(Stored)];
  memcpy(copied, &stored, sizeof(Stored));
#pragma unroll
  for (uint32_t i = 0; i < sizeof(Stored); ++i) bytes[i] = copied[i];
}

// Elements outside the packs lie before them and behind them.
template <uint32_t kPerPack>
__device__ uint64_t place_of_single(const PackedRange& range, uint64_t single) {
  return single < range.head ? single : single + range.packs * kPerPack;
}

// Calls body(index) for each element outside the packs, spread over the grid.
template <uint32_t kPerPack, class Body>
__device__ void for_single_elements(const PackedRange& range, Body body) {
  const uint64_t singles = range.elements - range.packs * kPerPack;
  for (uint64_t i = thread_of_grid(); i < singles; i += threads_of_grid()) {
    body(place_of_single<kPerPack>(range, i));
  }
}

// Calls body(pack, stride) such that each pack is one of the kTogether packs pack, pack + stride, ... of one call; the
// rest that does not fill a call goes to single(pack).
template <uint32_t kTogether, class Body, class Single>
__device__ void for_packs(uint64_t packs, Body body, Single single) {
  const uint64_t tile = static_cast<uint64_t>(blockDim.x) * kTogether;
  const uint64_t tiles = packs / tile;
  for (uint64_t t = blockIdx.x; t < tiles; t += gridDim.x) body(t * tile + threadIdx.x, blockDim.x);
  for (uint64_t p = tiles * tile + thread_of_grid(); p < packs; p += threads_of_grid()) single(p);
}

}  // namespace trestle::kernels
