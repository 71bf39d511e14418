#include "conformance/api_redops_cases.h"

#include <cstring>

#include "conformance/buffers/api_values.h"

namespace api {

namespace {

using ranks::succeeded;

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}

uint64_t random_bits(trestleDataType_t type, int rank, size_t i) {
  const uint64_t bits = mix(static_cast<uint64_t>(rank) << 40 ^ i);
  const size_t bytes = size_of(type);
  return bytes == 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

uint64_t compose(uint64_t first, uint64_t then) {
  const auto a = static_cast<uint32_t>(then >> 32);
  const uint32_t product = a * static_cast<uint32_t>(first >> 32);
  const uint32_t shift = a * static_cast<uint32_t>(first) + static_cast<uint32_t>(then);
  return static_cast<uint64_t>(product) << 32 | shift;
}

bool is_aligned(const void* pointer, trestleDataType_t type) {
  return reinterpret_cast<uintptr_t>(pointer) % size_of(type) == 0;
}

void expect_contract(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type) {
  EXPECT_GE(k, 2);
  EXPECT_GE(count, 1u);
  EXPECT_TRUE(is_aligned(dst, type));
  for (int s = 0; s < k; ++s) EXPECT_TRUE(is_aligned(sources[s], type));
}

// One rank's buffers for one call.
class Buffers {
 public:
  Buffers(const Reduction& what, size_t sent, size_t received, size_t shift, int rank)
      : what_(what), sent_(sent), shift_(shift), rank_(rank), bytes_(size_of(what.type)) {
    send_.resize(sent * bytes_ + shift + 8);
    recv_.resize(received * bytes_ + shift + 8);
    fill(send());
  }
  std::byte* send() { return reinterpret_cast<std::byte*>(send_.data()) + shift_; }
  std::byte* recv() { return reinterpret_cast<std::byte*>(recv_.data()) + shift_; }
  void fill(std::byte* to) const {
    for (size_t i = 0; i < sent_; ++i) put(to, i, what_.contribution(rank_, i));
  }
  // got[0..count) are elements [first, first + count) of the result.
  void expect(const std::byte* got, size_t first, size_t count, const std::string& form) const {
    for (size_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, got + i * bytes_, bytes_);
      ASSERT_EQ(bits, what_.result(first + i)) << what_.name << ", " << form << ", " << name(what_.type) << ", rank "
                                               << rank_ << ", element " << first + i << " of " << sent_;
    }
  }
  void expect_send_unchanged(const std::string& form) {
    for (size_t i = 0; i < sent_; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, send() + i * bytes_, bytes_);
      ASSERT_EQ(bits, what_.contribution(rank_, i)) << form << " changed the send buffer at " << i;
    }
  }

 private:
  void put(std::byte* to, size_t i, uint64_t bits) const { std::memcpy(to + i * bytes_, &bits, bytes_); }
  const Reduction& what_;
  const size_t sent_;
  const size_t shift_;
  const int rank_;
  const size_t bytes_;
  std::vector<char> send_, recv_;
};

struct Runner {
  const Reduction& what;
  trestleRedOp_t op;
  size_t count, shift;
  int rank, ranks;
  trestleComm_t comm;
  bool refusals_allowed;

  // Whether to check the result.
  bool went(trestleResult_t result) const {
    if (refusals_allowed && result == trestleInvalidArgument) return false;
    EXPECT_TRUE(succeeded(result, comm));
    return result == trestleSuccess && wait();
  }
  bool wait() const {
    const trestleResult_t result = trestleCommSynchronize(comm);
    EXPECT_TRUE(succeeded(result, comm));
    return result == trestleSuccess;
  }

  void all_reduce(bool in_place) const {
    Buffers b(what, count, count, shift, rank);
    if (in_place) b.fill(b.recv());
    const void* send = in_place ? b.recv() : b.send();
    if (!went(trestleAllReduce(send, b.recv(), count, what.type, op, comm, nullptr))) return;
    b.expect(b.recv(), 0, count, in_place ? "all-reduce in place" : "all-reduce");
    b.expect_send_unchanged("all-reduce");
  }
  void halves() const {
    Buffers b(what, count, count, shift, rank);
    trestleRequest_t request = nullptr;
    const trestleResult_t started =
        trestleAllReduceStart(b.send(), b.recv(), count, what.type, op, comm, nullptr, &request);
    if (refusals_allowed && started == trestleInvalidArgument) return;
    ASSERT_TRUE(succeeded(started, comm));
    ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
    b.expect(b.recv(), 0, count, "all-reduce in halves");
    b.expect_send_unchanged("all-reduce in halves");
    EXPECT_TRUE(succeeded(trestleRequestFree(request)));
  }
  void persistent() const {
    Buffers b(what, count, count, shift, rank);
    trestleRequest_t request = nullptr;
    const trestleResult_t made =
        trestleReduceInit(b.send(), b.recv(), count, what.type, op, 0, comm, nullptr, &request);
    if (refusals_allowed && made == trestleInvalidArgument) return;
    ASSERT_TRUE(succeeded(made, comm));
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(succeeded(trestleRequestStart(request), comm));
      ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
      if (rank == 0) b.expect(b.recv(), 0, count, "persistent reduce");
      if (rank == 0) std::memset(b.recv(), 0x5a, count * size_of(what.type));
    }
    EXPECT_TRUE(succeeded(trestleRequestFree(request)));
  }
  void reduce(int root, bool in_place) const {
    Buffers b(what, count, count, shift, rank);
    const bool mine = rank == root;
    if (mine && in_place) b.fill(b.recv());
    const void* send = mine && in_place ? b.recv() : b.send();
    if (!went(trestleReduce(send, mine ? b.recv() : nullptr, count, what.type, op, root, comm, nullptr))) return;
    if (mine) b.expect(b.recv(), 0, count, "reduce to " + std::to_string(root));
    b.expect_send_unchanged("reduce");
  }
  void reduce_scatter(bool in_place) const {
    const size_t all = count * static_cast<size_t>(ranks);
    const size_t mine = count * static_cast<size_t>(rank);
    Buffers b(what, all, count, shift, rank);
    std::byte* const recv = in_place ? b.send() + mine * size_of(what.type) : b.recv();
    if (!went(trestleReduceScatter(b.send(), recv, count, what.type, op, comm, nullptr))) return;
    b.expect(recv, mine, count, in_place ? "reduce-scatter in place" : "reduce-scatter");
    if (!in_place) b.expect_send_unchanged("reduce-scatter");
  }
  void reduce_scatter_v() const {
    std::vector<size_t> counts;
    size_t all = 0, before = 0;
    for (int r = 0; r < ranks; ++r) {
      counts.push_back(r == 1 ? 0 : count / 2 + static_cast<size_t>(3 * r));
      if (r < rank) before += counts.back();
      all += counts.back();
    }
    const size_t mine = counts[static_cast<size_t>(rank)];
    Buffers b(what, all, mine, shift, rank);
    if (!went(trestleReduceScatterV(b.send(), b.recv(), counts.data(), what.type, op, comm, nullptr))) return;
    b.expect(b.recv(), before, mine, "reduce-scatter-v");
    b.expect_send_unchanged("reduce-scatter-v");
  }
  void group() const {
    Buffers first(what, count, count, shift, rank), second(what, count + 1, count + 1, shift, rank);
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    const trestleResult_t a = trestleAllReduce(first.send(), first.recv(), count, what.type, op, comm, nullptr);
    const trestleResult_t b = trestleReduce(second.send(), second.recv(), count + 1, what.type, op, 0, comm, nullptr);
    const trestleResult_t end = trestleGroupEnd();
    EXPECT_TRUE(succeeded(a, comm));
    EXPECT_TRUE(succeeded(b, comm));
    if (!went(end)) return;
    first.expect(first.recv(), 0, count, "all-reduce in a group");
    if (rank == 0) second.expect(second.recv(), 0, count + 1, "reduce in a group");
  }
};

}  // namespace

uint64_t bits_of(trestleDataType_t type, double value) {
  return is_float(type) ? encode(type, value) : static_cast<uint64_t>(value);
}

double scalar_of(int rank) {
  return rank % 2 == 0 ? 1 : 2;
}

Reduction scaled_sum(trestleDataType_t type, int ranks) {
  // Four ranks contribute 1 to each element, so that types with three significant digits can hold the sum.
  const auto value = [ranks](int rank, size_t i) {
    return (static_cast<size_t>(rank) + i) % static_cast<size_t>(ranks) < 4 ? 1.0 : 0.0;
  };
  return {"pre-multiplied sum", type, [=](int rank, size_t i) { return bits_of(type, value(rank, i)); },
          [=](size_t i) {
            double sum = 0;
            for (int r = 0; r < ranks; ++r) sum += value(r, i) * scalar_of(r);
            return bits_of(type, sum);
          }};
}

Reduction affine_maps(int ranks) {
  return {"affine maps", trestleUint64, [](int rank, size_t i) { return random_bits(trestleUint64, rank, i); },
          [=](size_t i) {
            uint64_t map = random_bits(trestleUint64, 0, i);
            for (int r = 1; r < ranks; ++r) map = compose(map, random_bits(trestleUint64, r, i));
            return map;
          }};
}

int compose_maps(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void*) {
  expect_contract(dst, sources, k, count, type);
  for (size_t i = 0; i < count; ++i) {
    uint64_t map = static_cast<const uint64_t*>(sources[0])[i];
    for (int s = 1; s < k; ++s) map = compose(map, static_cast<const uint64_t*>(sources[s])[i]);
    static_cast<uint64_t*>(dst)[i] = map;
  }
  return 0;
}

Reduction first_of_all(trestleDataType_t type, int) {
  return {"the first", type, [=](int rank, size_t i) { return random_bits(type, rank, i); },
          [=](size_t i) { return random_bits(type, 0, i); }};
}

int keep_first(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void*) {
  expect_contract(dst, sources, k, count, type);
  std::memmove(dst, sources[0], count * size_of(type));
  return 0;
}

Reduction exclusive_or(trestleDataType_t type, int ranks) {
  return {"exclusive or", type, [=](int rank, size_t i) { return random_bits(type, rank, i); },
          [=](size_t i) {
            uint64_t bits = 0;
            for (int r = 0; r < ranks; ++r) bits ^= random_bits(type, r, i);
            return bits;
          }};
}

int xor_bits(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void*) {
  expect_contract(dst, sources, k, count, type);
  for (size_t byte = 0; byte < count * size_of(type); ++byte) {
    unsigned char bits = 0;
    for (int s = 0; s < k; ++s)
      bits = static_cast<unsigned char>(bits ^ static_cast<const unsigned char*>(sources[s])[byte]);
    static_cast<unsigned char*>(dst)[byte] = bits;
  }
  return 0;
}

void run_all_forms(const Reduction& what, trestleRedOp_t op, size_t count, size_t shift, int rank, int ranks,
                   trestleComm_t comm, bool refusals_allowed) {
  const Runner runner{what, op, count, shift, rank, ranks, comm, refusals_allowed};
  for (const bool in_place : {false, true}) {
    runner.all_reduce(in_place);
    runner.reduce_scatter(in_place);
    runner.reduce(ranks - 1, in_place);
  }
  runner.reduce(ranks / 2, false);
  runner.reduce_scatter_v();
  runner.halves();
  runner.persistent();
  if (!refusals_allowed) runner.group();
}

}  // namespace api
