// The sums of delayed gradients and their account. The library's memory functions are replaced by the test's own.
#include "gradient/executor/run/delayed_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>

namespace trestle {
namespace {

std::vector<TensorEntry> entries(std::vector<std::pair<uint64_t, DataType>> shapes) {
  std::vector<TensorEntry> tensors;
  for (const auto& [count, type] : shapes) {
    TensorEntry tensor;
    tensor.name = "w" + std::to_string(tensors.size());
    tensor.count = count;
    tensor.type = type;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::unique_ptr<DelayedMemory> memory_of(const std::vector<TensorEntry>& tensors,
                                         const std::vector<TensorGroup>& buckets) {
  Result<std::unique_ptr<DelayedMemory>> memory = DelayedMemory::make(nullptr, tensors, buckets);
  EXPECT_TRUE(memory.ok());
  return std::move(memory).value();
}

const std::byte* bytes_of(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

std::vector<float> floats(const std::byte* data, size_t count) {
  std::vector<float> values(count);
  std::memcpy(values.data(), data, count * sizeof(float));
  return values;
}

TEST(DelayedMemory, SumsTheStepsOfASet) {
  const std::vector<TensorEntry> tensors = entries({{3, DataType::kFloat32}, {0, DataType::kFloat32}});
  const auto memory = memory_of(tensors, {{0, 1}});
  memory->add(0, 0, bytes_of({1, 2, 3}), 1);
  memory->add(0, 0, bytes_of({10, 20, 30}), 2);
  memory->add(0, 1, bytes_of({100, 200, 300}), 3);
  EXPECT_EQ(floats(memory->sum(0, 0), 3), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(floats(memory->sum(0, 1), 3), (std::vector<float>{100, 200, 300}));
  for (uint64_t step = 1; step <= 3; ++step) memory->add(1, step / 3, nullptr, step);
  EXPECT_EQ(memory->pending(), 3u);
  for (const uint32_t tensor : {0, 1}) {
    const Result<DelayedMemory::Batches> taken = memory->take(tensor, 0, 2);
    ASSERT_TRUE(taken.ok()) << taken.error().message;
    EXPECT_EQ(taken.value().oldest, 1u);
    EXPECT_EQ(taken.value().newest, 2u);
  }
  EXPECT_EQ(memory->pending(), 1u);
  // The set's memory is free, so that of the set after the next begins anew.
  memory->add(0, 2, bytes_of({5, 6, 7}), 4);
  EXPECT_EQ(floats(memory->sum(0, 2), 3), (std::vector<float>{5, 6, 7}));
}

TEST(DelayedMemory, KnowsALostOrDoubledGradient) {
  const std::vector<TensorEntry> tensors = entries({{1, DataType::kFloat32}});
  const auto memory = memory_of(tensors, {{0, 0}});
  memory->add(0, 0, bytes_of({1}), 1);
  const Result<DelayedMemory::Batches> taken = memory->take(0, 0, 2);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, Code::kInternalError);
  EXPECT_EQ(taken.error().message,
            "gradients of tensor 0 (\"w0\") are lost or doubled: of 1 steps, updates have 1, the last of them 1 where "
            "the plan has 2, and 0 are pending");
}

TEST(DelayedMemory, PartsOfABucketHaveEachElementOnce) {
  const std::vector<TensorEntry> tensors =
      entries({{5, DataType::kFloat32}, {7, DataType::kFloat64}, {0, DataType::kInt32}, {90, DataType::kFloat32}});
  const auto memory = memory_of(tensors, {{0, 2}, {3, 3}});
  for (const uint32_t bucket : {0, 1}) {
    for (const uint32_t parts : {1, 2, 3, 7, 200}) {
      uint64_t doubles = 0, singles = 0;
      std::set<uint64_t> offsets;
      for (uint32_t part = 0; part < parts; ++part) {
        for (const DelayedMemory::Run& run : memory->runs(bucket, part, parts)) {
          (run.type == DataType::kFloat64 ? doubles : singles) += run.count;
          EXPECT_TRUE(offsets.insert(run.offset).second);
        }
      }
      EXPECT_EQ(singles, bucket == 0 ? 5u : 90u) << parts;
      EXPECT_EQ(doubles, bucket == 0 ? 7u : 0u) << parts;
    }
  }
}

TEST(DelayedMemory, MergesASetIntoTheNextOne) {
  const std::vector<TensorEntry> tensors = entries({{4, DataType::kFloat32}});
  const auto memory = memory_of(tensors, {{0, 0}});
  memory->add(0, 1, bytes_of({1, 2, 3, 4}), 7);
  memory->add(0, 2, bytes_of({10, 20, 30, 40}), 8);
  for (uint32_t part = 0; part < 3; ++part) {
    for (const DelayedMemory::Run& run : memory->runs(0, part, 3)) memory->merge(run, 1);
  }
  memory->merge_accounts(1);
  const Result<DelayedMemory::Batches> taken = memory->take(0, 2, 2);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_EQ(taken.value().oldest, 7u);
  EXPECT_EQ(taken.value().newest, 8u);
  EXPECT_EQ(floats(memory->sum(0, 2), 4), (std::vector<float>{11, 22, 33, 44}));
}

}  // namespace
}  // namespace trestle

extern "C" {

trestleResult_t trestleMemAlloc(void** ptr, size_t size) {
  *ptr = std::malloc(size);
  return trestleSuccess;
}

trestleResult_t trestleMemFree(void* ptr) {
  std::free(ptr);
  return trestleSuccess;
}

const char* trestleGetLastError(trestleComm_t) {
  return "";
}

}  // extern "C"
