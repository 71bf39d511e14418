// How launches on a GPU are planned: every element is moved exactly once, and packs only where all buffers allow it.
#include "kernels/cuda/launch_plan.h"

#include <gtest/gtest.h>

#include <array>

namespace trestle::kernels {
namespace {

const void* at(uint64_t address) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(address));
}

TEST(LaunchPlan, CoversEveryElementOnce) {
  for (const uint32_t element_bytes : {1U, 2U, 4U, 8U}) {
    for (uint64_t offset = 0; offset < 16; ++offset) {
      for (const uint64_t elements : {0, 1, 2, 3, 7, 15, 16, 17, 33, 1000}) {
        const std::array<const void*, 2> buffers = {at(4096 + offset), at(8192 + offset)};
        const PackedRange range = packed_range(buffers, elements, element_bytes);
        const uint64_t per_pack = kPackBytes / element_bytes;
        ASSERT_EQ(range.elements, elements);
        ASSERT_LE(range.head + range.packs * per_pack, elements);
        const bool by_whole_elements = offset % element_bytes == 0;
        ASSERT_EQ(range.elements_are_aligned, by_whole_elements);
        if (range.packs > 0) {
          ASSERT_EQ((offset + range.head * element_bytes) % kPackBytes, 0U);
          ASSERT_LT(elements - range.head - range.packs * per_pack, per_pack) << "the rest fills a pack";
        } else if (by_whole_elements) {
          ASSERT_LT(elements, 2 * per_pack);
        }
      }
    }
  }
}

TEST(LaunchPlan, UsesNoPacksOfBuffersThatAreUnlike) {
  const std::array<const void*, 3> buffers = {at(4096), at(8192), at(8200)};
  EXPECT_EQ(packed_range(buffers, 1000, 4).packs, 0U);
  EXPECT_EQ(packed_range(buffers, 1000, 4).elements_are_aligned, 1U);
  const std::array<const void*, 2> odd = {at(4097), at(8193)};
  EXPECT_EQ(packed_range(odd, 1000, 4).packs, 0U) << "no number of elements reaches a multiple of 16";
  EXPECT_EQ(packed_range(odd, 1000, 4).elements_are_aligned, 0U);
  EXPECT_GT(packed_range(odd, 1000, 1).packs, 0U);
}

TEST(LaunchPlan, CopiesInTheLargestPacksThatBothBuffersAllow) {
  for (uint64_t offset = 0; offset < 16; ++offset) {
    for (const auto& [apart, pack_bytes] : {std::array<uint64_t, 2>{0, 16},
                                            {16, 16},
                                            {8, 8},
                                            {24, 8},
                                            {4, 4},
                                            {12, 4},
                                            {2, 2},
                                            {6, 2},
                                            {1, 1},
                                            {15, 1}}) {
      for (const uint64_t bytes : {0, 1, 2, 15, 33, 1000}) {
        const PackedRange range = packed_copy(at(8192 + offset), at(4096 + offset + apart), bytes);
        ASSERT_EQ(range.elements, bytes);
        ASSERT_EQ(range.pack_bytes, pack_bytes);
        ASSERT_LT(range.head, pack_bytes);
        ASSERT_LE(range.head + range.packs * pack_bytes, bytes);
        if (range.packs > 0) {
          ASSERT_EQ((offset + range.head) % pack_bytes, 0U);
          ASSERT_LT(bytes - range.head - range.packs * pack_bytes, pack_bytes);
        } else {
          ASSERT_LT(bytes, 2 * pack_bytes);
        }
      }
    }
  }
}

TEST(LaunchPlan, UsesPacksOfRowsThatBeginAlike) {
  CudaCopy copy;
  copy.dst = reinterpret_cast<void*>(4096 + 4);
  copy.src = at(8192 + 4);
  copy.rows = 3;
  copy.dst_stride = 160;
  copy.src_stride = 320;
  EXPECT_EQ(packed_rows(copy, 100).packs, 5U);
  EXPECT_EQ(packed_rows(copy, 100).head, 12U);
  EXPECT_EQ(packed_rows(copy, 100).pack_bytes, 16U);
  copy.src_stride = 100;
  EXPECT_EQ(packed_rows(copy, 100).packs, 25U) << "of 4 bytes";
  EXPECT_EQ(packed_rows(copy, 100).head, 0U);
  EXPECT_EQ(packed_rows(copy, 100).pack_bytes, 4U);
  copy.rows = 1;
  EXPECT_EQ(packed_rows(copy, 100).packs, 5U);
}

TEST(LaunchPlan, GivesBlocksToTheWorkThereIs) {
  EXPECT_EQ(blocks_for({0, 0, 0, 1}, 4, 4, 100), 1U);
  EXPECT_EQ(blocks_for({1000, 1000, 0, 1}, 4, 4, 100), 4U);
  EXPECT_EQ(blocks_for({4096, 0, 1024, 1}, 4, 4, 100), 1U);
  EXPECT_EQ(blocks_for({8192, 0, 2048, 1}, 4, 4, 100), 2U);
  EXPECT_EQ(blocks_for({uint64_t{1} << 40, 0, uint64_t{1} << 38, 1}, 4, 4, 100), 100U);
}

TEST(LaunchPlan, NamesTheKernelOfAReduction) {
  EXPECT_EQ(reduce_kernel(ReduceOp::kSum, source_variant(2)), "sum_2");
  EXPECT_EQ(reduce_kernel(ReduceOp::kAvg, source_variant(8)), "sum_8");
  EXPECT_EQ(reduce_kernel(ReduceOp::kMax, source_variant(4)), "max_4");
  for (const uint32_t sources : {1, 3, 5, 9, 128})
    EXPECT_EQ(reduce_kernel(ReduceOp::kMin, source_variant(sources)), "min_any");
  EXPECT_EQ(packs_together(source_variant(2)), 4U);
  EXPECT_EQ(packs_together(source_variant(8)), 1U);
  EXPECT_EQ(packs_together(source_variant(3)), 1U);
}

}  // namespace
}  // namespace trestle::kernels
