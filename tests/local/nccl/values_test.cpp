// What collectives compute through NCCL's interface on host memory: every type with every operator, exact. That nothing
// waits after a call shows that calls are complete when they return.
#include <algorithm>
#include <numeric>

#include "local/nccl/nccl_ranks.h"
#include "support/elements.h"

namespace {

using nccl_ranks::refused;
using nccl_ranks::succeeded;

using Bytes = std::vector<unsigned char>;

Bytes elements_of(ncclDataType_t type, const std::vector<uint64_t>& values) {
  const auto same = static_cast<trestleDataType_t>(type);  // the numbers of both are alike
  Bytes bytes(values.size() * elements::size_of(same));
  for (size_t i = 0; i < values.size(); ++i)
    elements::store(same, bytes.data(), i, elements::encode(same, static_cast<double>(values[i])));
  return bytes;
}

// 1 or 2, so that sums and products of four ranks have few bits. Averages must come out even: all ranks have the same.
uint64_t contribution(ncclRedOp_t op, int rank, size_t i) {
  return 1 + (op == ncclAvg ? i : i + static_cast<size_t>(rank)) % 2;
}

uint64_t combined(ncclRedOp_t op, int ranks, size_t i) {
  uint64_t result = contribution(op, 0, i);
  for (int rank = 1; rank < ranks && op != ncclAvg; ++rank) {
    const uint64_t next = contribution(op, rank, i);
    if (op == ncclSum) result += next;
    if (op == ncclProd) result *= next;
    if (op == ncclMax) result = std::max(result, next);
    if (op == ncclMin) result = std::min(result, next);
  }
  return result;
}

std::vector<uint64_t> table(size_t count, const std::function<uint64_t(size_t)>& value) {
  std::vector<uint64_t> values;
  for (size_t i = 0; i < count; ++i) values.push_back(value(i));
  return values;
}

// All-reduce, reduce and reduce-scatter of one type and operator.
void reduce_all_ways(int ranks, int rank, ncclComm_t comm, ncclDataType_t type, ncclRedOp_t op) {
  const size_t block = 13;
  const size_t count = block * static_cast<size_t>(ranks);
  const Bytes send = elements_of(type, table(count, [&](size_t i) { return contribution(op, rank, i); }));
  const Bytes sum = elements_of(type, table(count, [&](size_t i) { return combined(op, ranks, i); }));
  Bytes recv(send.size());
  ASSERT_TRUE(succeeded(ncclAllReduce(send.data(), recv.data(), count, type, op, comm, nullptr), comm));
  EXPECT_EQ(recv, sum) << "all-reduce, type " << type << ", operator " << op;

  recv = send;  // in place
  ASSERT_TRUE(succeeded(ncclAllReduce(recv.data(), recv.data(), count, type, op, comm, nullptr), comm));
  EXPECT_EQ(recv, sum) << "all-reduce in place, type " << type << ", operator " << op;

  const int root = ranks - 1;
  recv.assign(send.size(), 0x55);
  ASSERT_TRUE(succeeded(
      ncclReduce(send.data(), rank == root ? recv.data() : nullptr, count, type, op, root, comm, nullptr), comm));
  EXPECT_EQ(recv, rank == root ? sum : Bytes(send.size(), 0x55)) << "reduce, type " << type << ", operator " << op;

  const size_t block_bytes = send.size() / static_cast<size_t>(ranks);
  Bytes part(block_bytes);
  ASSERT_TRUE(succeeded(ncclReduceScatter(send.data(), part.data(), block, type, op, comm, nullptr), comm));
  const auto begin = sum.begin() + static_cast<ptrdiff_t>(block_bytes) * rank;
  EXPECT_TRUE(std::equal(part.begin(), part.end(), begin)) << "reduce-scatter, type " << type << ", operator " << op;
}

void reduce_every_type(int ranks, int rank, ncclComm_t comm) {
  for (int type = 0; type < ncclNumTypes; ++type) {
    for (int op = 0; op < ncclNumOps; ++op) {
      reduce_all_ways(ranks, rank, comm, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op));
    }
  }
}

TEST(NcclValues, EveryTypeAndOperatorInProcesses) {
  for (const int n : {2, 3, 4}) {
    nccl_ranks::on_processes(n, [&](int rank, ncclComm_t comm) { reduce_every_type(n, rank, comm); });
  }
}

TEST(NcclValues, EveryTypeAndOperatorInThreads) {
  for (const int n : {2, 3, 4}) {
    nccl_ranks::on_threads(n, [&](int rank, ncclComm_t comm) { reduce_every_type(n, rank, comm); });
  }
}

using Ints = std::vector<int>;

// Numbers from `first` on.
Ints numbers(int first, size_t count) {
  Ints all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

Ints concatenated(int ranks, const std::function<Ints(int)>& block) {
  Ints all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Ints one = block(rank);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void gather_all_ways(int ranks, int rank, ncclComm_t comm, size_t count) {
  const auto of_rank = [&](int r) { return numbers(1'000'000 * r, count); };
  const Ints own = of_rank(rank);
  const Ints all = concatenated(ranks, of_rank);
  Ints recv(all.size(), -1);
  ASSERT_TRUE(succeeded(ncclAllGather(own.data(), recv.data(), count, ncclInt, comm, nullptr), comm));
  EXPECT_EQ(recv, all) << "all-gather";
  for (int root = 0; root < ranks; ++root) {
    recv.assign(all.size(), -1);
    ASSERT_TRUE(succeeded(
        ncclGather(own.data(), rank == root ? recv.data() : nullptr, count, ncclInt, root, comm, nullptr), comm));
    EXPECT_EQ(recv, rank == root ? all : Ints(all.size(), -1)) << "gather";
    Ints block(count, -1);
    ASSERT_TRUE(succeeded(
        ncclScatter(rank == root ? all.data() : nullptr, block.data(), count, ncclInt, root, comm, nullptr), comm));
    EXPECT_EQ(block, own) << "scatter";
    block.assign(count, -1);
    ASSERT_TRUE(succeeded(ncclBroadcast(own.data(), block.data(), count, ncclInt, root, comm, nullptr), comm));
    EXPECT_EQ(block, of_rank(root)) << "broadcast";
    block = own;
    ASSERT_TRUE(succeeded(ncclBcast(block.data(), count, ncclInt, root, comm, nullptr), comm));
    EXPECT_EQ(block, of_rank(root)) << "broadcast in place";
  }
}

void exchange(int ranks, int rank, ncclComm_t comm, size_t count) {
  const auto sent = [&](int from, int to) { return numbers(1000 * (10 * from + to), count); };
  const Ints send = concatenated(ranks, [&](int to) { return sent(rank, to); });
  const Ints expected = concatenated(ranks, [&](int from) { return sent(from, rank); });
  Ints recv(send.size(), -1);
  ASSERT_TRUE(succeeded(ncclAlltoAll(send.data(), recv.data(), count, ncclInt, comm, nullptr), comm));
  EXPECT_EQ(recv, expected) << "all-to-all";

  // An all-to-all by messages of a group: all of them at once, each pair in the order of the calls.
  recv.assign(send.size(), -1);
  ASSERT_TRUE(succeeded(ncclGroupStart()));
  for (int peer = 0; peer < ranks; ++peer) {
    const size_t at = count * static_cast<size_t>(peer);
    EXPECT_TRUE(succeeded(ncclSend(send.data() + at, count, ncclInt, peer, comm, nullptr), comm));
    EXPECT_TRUE(succeeded(ncclRecv(recv.data() + at, count, ncclInt, peer, comm, nullptr), comm));
  }
  ASSERT_TRUE(succeeded(ncclGroupEnd(), comm));
  EXPECT_EQ(recv, expected) << "group of messages";
}

void move_all_ways(int ranks, int rank, ncclComm_t comm) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{100}, size_t{70'001}}) {
    gather_all_ways(ranks, rank, comm, count);
    exchange(ranks, rank, comm, count);
  }
}

TEST(NcclValues, BlocksArriveWhereTheyBelongInProcesses) {
  for (const int n : {2, 4}) {
    nccl_ranks::on_processes(n, [&](int rank, ncclComm_t comm) { move_all_ways(n, rank, comm); });
  }
}

TEST(NcclValues, BlocksArriveWhereTheyBelongInThreads) {
  nccl_ranks::on_threads(3, [&](int rank, ncclComm_t comm) { move_all_ways(3, rank, comm); });
}

TEST(NcclValues, LargeSumsOverManyCalls) {
  nccl_ranks::on_processes(3, [&](int rank, ncclComm_t comm) {
    std::vector<float> data(1'000'003);
    for (int round = 0; round < 5; ++round) {
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(rank + static_cast<int>(i % 1000) + round);
      ASSERT_TRUE(
          succeeded(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr), comm));
      for (size_t i = 0; i < data.size(); ++i) {
        ASSERT_EQ(data[i], static_cast<float>(3 + 3 * (static_cast<int>(i % 1000) + round))) << i;
      }
    }
  });
}

TEST(NcclValues, PreMultipliedSums) {
  nccl_ranks::on_processes(2, [&](int rank, ncclComm_t comm) {
    float scalar = rank == 0 ? 0.5F : 2.0F;
    for (const ncclScalarResidence_t residence : {ncclScalarHostImmediate, ncclScalarDevice}) {
      ncclRedOp_t op = ncclSum;
      ASSERT_TRUE(succeeded(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, residence, comm), comm));
      float value = 8.0F;
      ASSERT_TRUE(succeeded(ncclAllReduce(&value, &value, 1, ncclFloat, op, comm, nullptr), comm));
      EXPECT_EQ(value, 20.0F);
      EXPECT_TRUE(succeeded(ncclRedOpDestroy(op, comm), comm));
      EXPECT_TRUE(refused(ncclRedOpDestroy(op, comm), ncclInvalidArgument, {"RedOpDestroy"}));
    }
  });
}

}  // namespace
