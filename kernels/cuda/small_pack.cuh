// SmallPack: packs of small floats, converted by instructions of the device. They take a tenth of the time of the
// functions of kernels/small_float.h, whose bits are the contract.
//
// Widening is exact in both, but for the bits of a NaN. Narrowing rounds to the nearest, ties to even, in both. They
// differ in two cases. A NaN has another sign or other bits: every operator makes a NaN of one, so a result shows it.
// And an instruction for 8 bits stops at the largest finite number. So narrow() says no where a result is a NaN, or has
// 8 bits and is that number or a larger one. The caller does that pack again by small_float.h.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace trestle::kernels {

// Converters of words: two halves or four elements of 8 bits. in_doubt(): some bits, if a result is no number below the
// limit.
struct HalfWord {
  static constexpr uint32_t kElements = 2;
  __device__ static void widen(uint32_t word, float* to) {
    asm("{\n\t.reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "cvt.f32.f16 %0, low;\n\t"
        "cvt.f32.f16 %1, high;\n\t}"
        : "=f"(to[0]), "=f"(to[1])
        : "r"(word));
  }
  __device__ static uint32_t narrow(const float* from) {
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(from[0]), "f"(from[1]));
    return word;
  }
  // A NaN. An infinity is the same in both.
  __device__ static uint32_t in_doubt(uint32_t word) { return ((word & 0x7fff7fffu) + 0x03ff03ffu) & 0x80008000u; }
};

struct E4m3Word {
  static constexpr uint32_t kElements = 4;
  __device__ static void widen(uint32_t word, float* to) {
    uint32_t low, high;
    asm("{\n\t.reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "cvt.rn.f16x2.e4m3x2 %0, low;\n\t"
        "cvt.rn.f16x2.e4m3x2 %1, high;\n\t}"
        : "=r"(low), "=r"(high)
        : "r"(word));
    HalfWord::widen(low, to);
    HalfWord::widen(high, to + 2);
  }
  __device__ static uint32_t narrow(const float* from) {
    uint32_t word;
    asm("{\n\t.reg .b16 low, high;\n\t"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n\t"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n\t"
        "mov.b32 %0, {low, high};\n\t}"
        : "=r"(word)
        : "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]));
    return word;
  }
  // 0x7e is 448.
  __device__ static uint32_t in_doubt(uint32_t word) { return ((word & 0x7f7f7f7fu) + 0x02020202u) & 0x80808080u; }
};

struct E5m2Word {
  static constexpr uint32_t kElements = 4;
  // An element is the upper byte of a half.
  __device__ static void widen(uint32_t word, float* to) {
    HalfWord::widen(__byte_perm(word, 0, 0x1404), to);
    HalfWord::widen(__byte_perm(word, 0, 0x3424), to + 2);
  }
  __device__ static uint32_t narrow(const float* from) {
    uint32_t word;
    asm("{\n\t.reg .b16 low, high;\n\t"
        "cvt.rn.satfinite.e5m2x2.f32 low, %2, %1;\n\t"
        "cvt.rn.satfinite.e5m2x2.f32 high, %4, %3;\n\t"
        "mov.b32 %0, {low, high};\n\t}"
        : "=r"(word)
        : "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]));
    return word;
  }
  // 0x7b is 57344.
  __device__ static uint32_t in_doubt(uint32_t word) { return ((word & 0x7f7f7f7fu) + 0x05050505u) & 0x80808080u; }
};

// Whether the device has the instructions, and which.
template <DataType type>
struct SmallWord {
  static constexpr bool kIsKnown = false;
};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <>
struct SmallWord<DataType::kFloat16> : HalfWord {
  static constexpr bool kIsKnown = true;
};
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
template <>
struct SmallWord<DataType::kFloat8e4m3> : E4m3Word {
  static constexpr bool kIsKnown = true;
};
template <>
struct SmallWord<DataType::kFloat8e5m2> : E5m2Word {
  static constexpr bool kIsKnown = true;
};
#endif

template <class Word>
struct SmallPack {
  static constexpr uint32_t kWords = sizeof(uint4) / sizeof(uint32_t);
  static constexpr uint32_t kElements = kWords * Word::kElements;
  struct Values {
    float at[kElements];
  };

  __device__ static Values widen(uint4 pack) {
    const uint32_t words[kWords] = {pack.x, pack.y, pack.z, pack.w};
    Values values;
#pragma unroll
    for (uint32_t w = 0; w < kWords; ++w) Word::widen(words[w], values.at + w * Word::kElements);
    return values;
  }
  // False: the pack may have other bits than those of small_float.h.
  __device__ static bool narrow(const Values& values, uint4& pack) {
    uint32_t words[kWords];
    uint32_t in_doubt = 0;
#pragma unroll
    for (uint32_t w = 0; w < kWords; ++w) {
      words[w] = Word::narrow(values.at + w * Word::kElements);
      in_doubt |= Word::in_doubt(words[w]);
    }
    pack = make_uint4(words[0], words[1], words[2], words[3]);
    return in_doubt == 0;
  }
};

}  // namespace trestle::kernels
