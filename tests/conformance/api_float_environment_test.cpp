// The floating-point environment of a program's thread: nothing that the library computes depends on it, the thread has
// it back after every call, and threads of the library do not inherit it. Ranks and runs would have different bits
// otherwise.
#include <gtest/gtest.h>
#include <trestle/compress.h>

#include <atomic>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "conformance/buffers/api_values.h"
#include "support/ranks.h"

namespace api {
namespace api_float_environment_test {
namespace {

using ranks::Settings;
using ranks::succeeded;

// The control bits of this processor, and what fesetround() cannot set: that subnormal numbers become zero.
#if defined(__x86_64__)
constexpr uint64_t kFlushes = 0x8040;
uint64_t environment() {
  return __builtin_ia32_stmxcsr();
}
void set_environment(uint64_t bits) {
  __builtin_ia32_ldmxcsr(static_cast<uint32_t>(bits));
}
#elif defined(__aarch64__)
constexpr uint64_t kFlushes = uint64_t{1} << 24;
uint64_t environment() {
  uint64_t bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_environment(uint64_t bits) {
  asm volatile("msr fpcr, %0" : : "r"(bits) : "memory");
}
#else
constexpr uint64_t kFlushes = 0;
uint64_t environment() {
  return static_cast<uint64_t>(fegetround());
}
void set_environment(uint64_t bits) {
  fesetround(static_cast<int>(bits));
}
#endif

enum class Mode { kDefault, kFlushing, kUpward, kDownward };
constexpr Mode kModes[] = {Mode::kDefault, Mode::kFlushing, Mode::kUpward, Mode::kDownward};

// Of the calling thread, until the end of the scope.
class InMode {
 public:
  explicit InMode(Mode mode) : rounding_(fegetround()), found_(environment()) {
    set_environment(mode == Mode::kFlushing ? found_ | kFlushes : found_ & ~kFlushes);
    fesetround(mode == Mode::kUpward ? FE_UPWARD : mode == Mode::kDownward ? FE_DOWNWARD : FE_TONEAREST);
  }
  ~InMode() {
    set_environment(found_);
    fesetround(rounding_);
  }

 private:
  const int rounding_;
  const uint64_t found_;
};

// Inputs of which no sum is exact, subnormal ones among them.
template <class T>
std::vector<T> inputs(size_t count, int rank) {
  std::vector<T> values(count);
  ranks::Random random{static_cast<uint64_t>(rank) * 7919 + 5};
  for (size_t i = 0; i < count; ++i) {
    const auto fraction = static_cast<T>(1 + static_cast<double>(random.next() >> 12) * 0x1p-52);
    const T small = std::numeric_limits<T>::denorm_min() * static_cast<T>(1 + random.below(1000));
    values[i] = i % 3 == 0 ? small : std::ldexp(fraction, static_cast<int>(random.below(6)) - 3);
  }
  return values;
}

template <class T>
constexpr trestleDataType_t kType = sizeof(T) == 8 ? trestleFloat64 : trestleFloat32;

template <class T>
std::vector<T> sums(const std::vector<T>& send, trestleComm_t comm, Mode mode) {
  std::vector<T> result(send.size());
  const InMode set(mode);
  EXPECT_TRUE(
      succeeded(trestleAllReduce(send.data(), result.data(), send.size(), kType<T>, trestleSum, comm, nullptr)));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check_sums(int rank, trestleComm_t comm, size_t count) {
  const std::vector<T> send = inputs<T>(count, rank);
  const std::vector<T> right = sums(send, comm, Mode::kDefault);
  for (const Mode mode : kModes) {
    const Mode mine = rank % 2 == 0 ? mode : Mode::kDefault;  // ranks differ, too
    EXPECT_TRUE(same_bits(sums(send, comm, mode), right)) << "mode " << static_cast<int>(mode) << ", " << count;
    EXPECT_TRUE(same_bits(sums(send, comm, mine), right)) << "only some ranks, " << static_cast<int>(mode);
  }
}

TEST(ApiFloatEnvironment, OfACallerReachesNoSum) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    ranks::on_threads({.ranks = 3, .transport = transport}, [](int rank, trestleComm_t comm) {
      for (const size_t count : {3, 1000, 100'000}) {
        check_sums<float>(rank, comm, count);
        check_sums<double>(rank, comm, count);
      }
    });
  }
}

// Wide enough for subnormal halves, which widen to normal numbers, and for those of bfloat16, which do not.
TEST(ApiFloatEnvironment, OfACallerReachesNoSumOfSmallFloats) {
  for (const trestleDataType_t type : {trestleFloat16, trestleBfloat16, trestleFloat8e4m3, trestleFloat8e5m2}) {
    ranks::on_threads({.ranks = 2, .transport = "shm"}, [type](int, trestleComm_t comm) {
      for (const size_t count : {4, 5000}) {
        for (const Mode mode : kModes) {
          std::vector<std::byte> data(count * size_of(type));
          for (size_t i = 0; i < count; ++i) store(type, data.data(), i, 1);  // the smallest number
          const InMode set(mode);
          EXPECT_TRUE(
              succeeded(trestleAllReduce(data.data(), data.data(), count, type, trestleSum, comm, nullptr), comm));
          EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
          for (size_t i = 0; i < count; ++i) ASSERT_EQ(load(type, data.data(), i), 2u) << name(type);
        }
      }
    });
  }
}

// Nobody waits in a call: threads of the library, which a thread in another mode has started, do everything.
TEST(ApiFloatEnvironment, OfWhoCreatesACommunicatorReachesNoThreadOfTheLibrary) {
  ranks::Job job;
  job.body = [](ranks::Process&) {
    const InMode set(Mode::kUpward);  // its threads inherit it
    ranks::run_threads({.ranks = 2, .transport = "tcp"}, [](int rank, trestleComm_t comm) {
      const std::vector<float> send = inputs<float>(50'000, rank);
      const std::vector<float> right = sums(send, comm, Mode::kDefault);
      std::vector<float> result(send.size());
      std::atomic<bool> told{false};
      trestleEvent_t event = nullptr;
      trestleStream_t stream = nullptr;
      EXPECT_TRUE(succeeded(trestleStreamCreate(&stream)));
      EXPECT_TRUE(succeeded(trestleEventCreate(&event)));
      EXPECT_TRUE(succeeded(
          trestleAllReduce(send.data(), result.data(), send.size(), trestleFloat32, trestleSum, comm, stream), comm));
      EXPECT_TRUE(succeeded(trestleEventRecord(event, stream)));
      const auto tell = [](void* context, trestleResult_t) { static_cast<std::atomic<bool>*>(context)->store(true); };
      EXPECT_TRUE(succeeded(trestleEventNotify(event, tell, &told)));
      ranks::wait_until([&] { return told.load(); });
      EXPECT_TRUE(same_bits(result, right));
      EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
      EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
    });
  };
  ranks::expect_ended_well(ranks::run(job));
}

TEST(ApiFloatEnvironment, OfACallerReachesNoPrediction) {
  ranks::on_threads({.ranks = 4, .dims = "2x2", .transport = "tcp"}, [](int, trestleComm_t comm) {
    for (size_t count = 1; count < 20'000'000; count = count * 7 / 3 + 1) {
      double first = 0;
      for (const Mode mode : kModes) {
        const InMode set(mode);
        double us = 0;
        EXPECT_TRUE(succeeded(trestlePredictTime(comm, trestleCollAllReduce, count, trestleFloat32, &us), comm));
        if (mode == Mode::kDefault) first = us;
        EXPECT_EQ(std::memcmp(&us, &first, sizeof us), 0) << count << ": " << us << " instead of " << first;
      }
    }
  });
}

// The status flags are a part of it: whether this thread or another one has added is chance.
TEST(ApiFloatEnvironment, IsTheCallersAgainAfterEveryCall) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    const std::vector<float> small = inputs<float>(4, rank), large = inputs<float>(100'000, rank);
    const std::vector<double> huge(4, std::numeric_limits<double>::max());  // their sum overflows
    for (const Mode mode : kModes) {
      const InMode set(mode);
      feclearexcept(FE_ALL_EXCEPT);
      const uint64_t before = environment();
      const int rounding = fegetround();
      std::vector<float> to_small(small.size()), to_large(large.size());
      std::vector<double> to_huge(huge.size());
      const auto reduce = [&](const void* send, void* recv, size_t count, trestleDataType_t type) {
        EXPECT_TRUE(succeeded(trestleAllReduce(send, recv, count, type, trestleSum, comm, nullptr), comm));
        EXPECT_EQ(environment(), before);
        EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
      };
      reduce(small.data(), to_small.data(), small.size(), trestleFloat32);
      reduce(huge.data(), to_huge.data(), huge.size(), trestleFloat64);
      reduce(large.data(), to_large.data(), large.size(), trestleFloat32);
      EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      EXPECT_EQ(environment(), before);
      EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
      EXPECT_EQ(fegetround(), rounding);
      EXPECT_TRUE(std::isinf(to_huge[0]));
    }
  });
}

// A program that wants a signal for its own overflows gets none for a sum's.
TEST(ApiFloatEnvironment, OfACallerThatTrapsEndsNoProcess) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    for (const size_t count : {4, 100'000}) {
      const float infinity = std::numeric_limits<float>::infinity();
      const std::vector<float> send(count, rank == 0 ? infinity : -infinity);
      std::vector<float> result(count);
      feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
      const trestleResult_t reduced =
          trestleAllReduce(send.data(), result.data(), count, trestleFloat32, trestleSum, comm, nullptr);
      const trestleResult_t waited = trestleCommSynchronize(comm);
      const int trapping = fegetexcept();
      fedisableexcept(FE_ALL_EXCEPT);
      EXPECT_TRUE(succeeded(reduced, comm) && succeeded(waited, comm));
      EXPECT_NE(trapping & FE_OVERFLOW, 0);
      EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result.back()));
    }
  });
}

// What an exchange of top-k adds itself, in the thread that calls.
TEST(ApiFloatEnvironment, OfACallerReachesNoSparseSum) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
    config.method = trestleTopKExact;
    config.ratio = 1;
    config.startup = config.perByte = 1e-9;
    trestleTopK_t topk = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 999, &config), comm));
    const std::vector<float> gradient = inputs<float>(999, rank);
    std::vector<float> right;
    for (const Mode mode : kModes) {
      std::vector<float> result(gradient.size()), residual(gradient.size());
      const InMode set(mode);
      EXPECT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
      if (mode == Mode::kDefault) right = result;
      EXPECT_TRUE(same_bits(result, right)) << "mode " << static_cast<int>(mode);
    }
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk), comm));
  });
}

// What a program's function finds, and leaves behind.
struct Seen {
  std::atomic<int> calls{0};
  std::atomic<int> others{0};  // that found another environment than the default one

  static int add(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t, void* context) {
    auto& seen = *static_cast<Seen*>(context);
    seen.calls.fetch_add(1);
    if (fegetround() != FE_TONEAREST || (environment() & kFlushes) != 0) seen.others.fetch_add(1);
    for (size_t i = 0; i < count; ++i) {
      float sum = static_cast<const float*>(sources[0])[i];
      for (int s = 1; s < k; ++s) sum += static_cast<const float*>(sources[s])[i];
      static_cast<float*>(dst)[i] = sum;
    }
    fesetround(FE_DOWNWARD);
    return 0;
  }
};

TEST(ApiFloatEnvironment, OfACallerReachesNoReductionFunctionNorTheReverse) {
  ranks::on_threads({.ranks = 2, .transport = "tcp"}, [](int rank, trestleComm_t comm) {
    Seen seen;
    trestleRedOp_t op;
    ASSERT_TRUE(succeeded(trestleRedOpCreate(&op, Seen::add, &seen, 1, comm), comm));
    const std::vector<float> send = inputs<float>(500'000, rank);
    const std::vector<float> right = sums(send, comm, Mode::kDefault);
    for (const Mode mode : kModes) {
      std::vector<float> result(send.size());
      const InMode set(mode);
      const uint64_t before = environment();
      EXPECT_TRUE(succeeded(
          trestleAllReduce(send.data(), result.data(), send.size(), trestleFloat32, op, comm, nullptr), comm));
      EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      EXPECT_EQ(environment(), before);
      EXPECT_TRUE(same_bits(result, right));
    }
    EXPECT_GT(seen.calls.load(), 1);
    EXPECT_EQ(seen.others.load(), 0);
    EXPECT_TRUE(succeeded(trestleRedOpDestroy(op, comm), comm));
  });
}

}  // namespace
}  // namespace api_float_environment_test
}  // namespace api
