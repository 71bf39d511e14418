// Compressed all-reduces of every type and by every method: results and residuals equal the oracle's, element by
// element.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/compress/compress_oracle.h"
#include "kernels/small_float.h"

namespace compressed {
namespace {

using ranks::succeeded;
using Doubles = std::vector<double>;

constexpr uint64_t kSteps = 5;
constexpr trestleDataType_t kTypes[] = {trestleFloat32, trestleFloat16, trestleBfloat16, trestleFloat64};

// Elements of a type in memory. Numbers are rounded once when they are put there.
class Elements {
 public:
  Elements(trestleDataType_t type, size_t count) : type_(type), count_(count), bytes_(count * size() + 1) {}
  Elements(trestleDataType_t type, const Doubles& values) : Elements(type, values.size()) {
    for (size_t i = 0; i < count_; ++i) put(i, values[i]);
  }

  void* data() { return bytes_.data(); }
  void put(size_t i, double value) {
    if (type_ == trestleFloat64) return store(i, value);
    const auto single = static_cast<float>(value);
    if (type_ == trestleFloat32) return store(i, single);
    store(i, type_ == trestleFloat16 ? trestle::float_to_half(single) : trestle::float_to_bfloat16(single));
  }
  double at(size_t i) const {
    if (type_ == trestleFloat64) return load<double>(i);
    if (type_ == trestleFloat32) return load<float>(i);
    const auto bits = load<uint16_t>(i);
    return type_ == trestleFloat16 ? trestle::half_to_float(bits) : trestle::bfloat16_to_float(bits);
  }
  Doubles values() const {
    Doubles values(count_);
    for (size_t i = 0; i < count_; ++i) values[i] = at(i);
    return values;
  }

 private:
  size_t size() const { return type_ == trestleFloat64 ? 8 : type_ == trestleFloat32 ? 4 : 2; }
  template <class T>
  void store(size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof value, &value, sizeof value);
  }
  template <class T>
  T load(size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof value, sizeof value);
    return value;
  }

  trestleDataType_t type_;
  size_t count_;
  std::vector<std::byte> bytes_;
};

trestleDataType_t residual_type(trestleDataType_t type) {
  return type == trestleFloat64 ? trestleFloat64 : trestleFloat32;
}

Doubles doubles_of(const Floats& values) {
  return {values.begin(), values.end()};
}

trestleTopK_t make_typed(trestleComm_t comm, const Case& one, trestleDataType_t type) {
  trestleTopKConfig_t config = one.config();
  config.type = type;
  trestleTopK_t topk = nullptr;
  EXPECT_TRUE(succeeded(trestleTopKCreate(&topk, comm, one.count, &config), comm));
  return topk;
}

// What the type makes of the oracle's sums.
Doubles expected_of(const Oracle& sums, const Case& one, trestleDataType_t type) {
  Doubles expected = doubles_of(sums.result());
  for (double& value : expected) {
    if (one.op == trestleAvg)
      value = type == trestleFloat64 ? value / one.ranks : static_cast<float>(value) / static_cast<float>(one.ranks);
  }
  return Elements(type, expected).values();
}

// Of 16 bits each rank's value is multiplied by 1/n first. Where that is not exact, a mean may be rounded to the
// neighbouring number, or differ from 0.
void expect_results(const Doubles& are, const Oracle& sums, const Case& one, trestleDataType_t type) {
  const Doubles expected = expected_of(sums, one, type);
  const bool is_power_of_two = (one.ranks & (one.ranks - 1)) == 0;
  if (one.op == trestleSum || residual_type(type) == type || is_power_of_two) {
    ASSERT_EQ(are, expected);
    return;
  }
  const double unit = std::ldexp(1, type == trestleFloat16 ? -10 : -7);
  for (size_t i = 0; i < one.count; ++i) ASSERT_NEAR(are[i], expected[i], std::abs(expected[i]) * unit + 1e-4) << i;
}

// The sums over all ranks of their residuals and gradients.
Doubles held(const Oracle& oracle, const Case& one, const std::vector<Floats>& gradients) {
  Doubles sums(one.count);
  for (int rank = 0; rank < one.ranks; ++rank) {
    for (size_t i = 0; i < one.count; ++i) sums[i] += oracle.residual(rank)[i];
  }
  for (const Floats& gradient : gradients) {
    for (size_t i = 0; i < one.count; ++i) sums[i] += gradient[i];
  }
  return sums;
}

void run(const Case& one, trestleDataType_t type, int rank, trestleComm_t comm) {
  SCOPED_TRACE(testing::Message() << one << ", type " << type << ", rank " << rank);
  trestleTopK_t topk = make_typed(comm, one, type);
  Case summed = one;
  summed.op = trestleSum;
  Oracle oracle(summed);
  Elements residual(residual_type(type), one.count), result(type, one.count);
  uint64_t sent = 0;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    std::vector<Floats> gradients;
    for (int r = 0; r < one.ranks; ++r) gradients.push_back(gradient_of(r, step, one.count));
    const Doubles own = doubles_of(gradients[static_cast<size_t>(rank)]);
    Elements gradient(type, own);
    const Doubles there_was = held(oracle, one, gradients);
    oracle.step(gradients);
    // Every other step in place.
    const bool in_place = step % 2 == 0;
    if (!in_place) result = Elements(type, Doubles(one.count, std::nan("")));
    ASSERT_TRUE(succeeded(
        trestleAllReduceTopK(gradient.data(), residual.data(), in_place ? gradient.data() : result.data(), topk),
        comm));
    if (!in_place) {
      ASSERT_EQ(gradient.values(), own) << "the gradient is only read";
    }
    ASSERT_NO_FATAL_FAILURE(expect_results((in_place ? gradient : result).values(), oracle, one, type));
    ASSERT_EQ(residual.values(), doubles_of(oracle.residual(rank)));
    Doubles there_is = held(oracle, one, {});
    for (size_t i = 0; i < one.count; ++i) there_is[i] += oracle.result()[i];
    ASSERT_EQ(there_is, there_was) << "something is lost";
    sent += oracle.elements();
    const trestleTopKStats_t stats = stats_of(topk);
    EXPECT_EQ(stats.steps, one.steps + step);
    EXPECT_EQ(stats.sent, sent);
    EXPECT_EQ(stats.nans, 0u);
    if (one.count == 0) continue;
    EXPECT_EQ(stats.gain, oracle.gain(rank));
    EXPECT_EQ(stats.root, oracle.root());
    EXPECT_EQ(stats.elements, oracle.elements());
    EXPECT_EQ(stats.method, one.method);
    EXPECT_TRUE(one.collective == trestleTopKAny || stats.collective == one.collective);
  }
  EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
}

// The oracle's thresholds are float32.
bool has_oracle(const Way& way, trestleDataType_t type) {
  return way.method != trestleTopKMultiSampling || type != trestleFloat64;
}

TEST(CompressedTypes, AreTheOracles) {
  for (const char* transport : {"loopback", "shm"}) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
      ranks::on_threads({.ranks = ranks, .transport = transport}, [&](int rank, trestleComm_t comm) {
        int number = ranks;
        const int turn = transport[0] == 's' ? 0 : 1;
        for (const Way& way : kWays) {
          for (const trestleDataType_t type : kTypes) {
            if (!has_oracle(way, type)) continue;
            for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1001}}) {
              for (const double ratio : {1.0, 0.1, 0.004}) {
                if (count < 2 && ratio < 1) continue;
                if (++number % 2 == turn) continue;  // every case on one of the transports
                Case one{ranks, count, ratio, way.method, way.collective};
                one.op = number / 2 % 2 == 0 ? trestleAvg : trestleSum;
                if (way.method == trestleTopKLayerwise) one.layers = {count / 3, 0, count - count / 3};
                run(one, type, rank, comm);
                if (testing::Test::HasFailure()) return;
              }
            }
          }
        }
      });
    }
  }
}

TEST(CompressedTypes, BetweenProcesses) {
  ranks::on_ranks({.ranks = 3, .transport = "tcp", .processes = true}, [](int rank, trestleComm_t comm) {
    for (const Way& way : kWays) {
      for (const trestleDataType_t type : kTypes) {
        if (!has_oracle(way, type)) continue;
        Case one{3, 20'000, 0.05, way.method, way.collective, trestleSum};
        if (way.method == trestleTopKLayerwise) one.layers = {one.count / 3, 0, one.count - one.count / 3};
        run(one, type, rank, comm);
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

// Long enough for the sample that finds thresholds, and for messages in parts.
TEST(CompressedTypes, OfLongGradients) {
  for (const Way& way : kWays) {
    ranks::on_threads({.ranks = 3, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      Case one{3, 60'000, 0.02, way.method, way.collective, trestleSum};
      if (way.method == trestleTopKLayerwise) one.layers = {one.count / 3, 0, one.count - one.count / 3};
      run(one, trestleFloat32, rank, comm);
    });
  }
}

// A program that continues from a checkpoint says how many steps there were; the turns go on.
TEST(CompressedTypes, ContinueFromACheckpoint) {
  ranks::on_threads({.ranks = 3}, [](int rank, trestleComm_t comm) {
    for (const uint64_t steps : {uint64_t{1}, uint64_t{2}, (uint64_t{1} << 40) + 1}) {
      Case one{3, 50, 0.1};
      one.steps = steps;
      run(one, trestleFloat32, rank, comm);
    }
  });
}

// What float32 could not hold: the element is chosen by it, and arrives with it.
TEST(CompressedTypes, DoublesAreChosenAndTravelWhole) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    const double little = std::ldexp(1, -50);
    for (const Way& way : kWays) {
      Case one{2, 3, 0.3, way.method, way.collective, trestleSum};
      one.layers = {3};
      trestleTopK_t topk = make_typed(comm, one, trestleFloat64);
      const Doubles gradient = {1, 1 + (1 + rank) * little, -1};
      Doubles residual(3), result(3);
      ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
      EXPECT_EQ(result, (Doubles{0, 2 + 3 * little, 0})) << one;
      EXPECT_EQ(residual, (Doubles{1, 0, -1})) << one;
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    }
  });
}

// 16 bits would round each of these additions away.
TEST(CompressedTypes, SmallGradientsGatherInTheResidual) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    for (const trestleDataType_t type : {trestleFloat16, trestleBfloat16}) {
      trestleTopK_t topk = make_typed(comm, {1, 2, 0.5}, type);
      const double little = std::ldexp(1, -12);
      Elements gradient(type, Doubles{4, little}), result(type, 2);
      Floats residual = {0, 1};
      for (int step = 0; step < 16; ++step)
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
      EXPECT_EQ(result.values(), (Doubles{4, 0}));
      EXPECT_EQ(residual, (Floats{0, static_cast<float>(1 + 16 * little)}));
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    }
  });
}

// Rounded after each addition, the small ones would be lost.
TEST(CompressedTypes, SumsAreRoundedOnce) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    for (const trestleDataType_t type : {trestleFloat16, trestleBfloat16}) {
      const double unit = type == trestleFloat16 ? 2048 : 256;  // from here on, numbers are two apart
      for (const Way& way : kWays) {
        Case one{3, 1, 1, way.method, way.collective, trestleSum};
        one.layers = {1};
        trestleTopK_t topk = make_typed(comm, one, type);
        Elements gradient(type, Doubles{rank == 0 ? unit : 1});
        Floats residual(1);
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), gradient.data(), topk), comm));
        EXPECT_EQ(gradient.at(0), unit + 2) << one;
        EXPECT_EQ(residual[0], 0);
        EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
      }
    }
  });
}

// Their sum fits into no float32.
TEST(CompressedTypes, MeansOfLargeNumbersAreNumbers) {
  ranks::on_threads({.ranks = 4, .transport = "shm"}, [](int, trestleComm_t comm) {
    for (const Way& way : kWays) {
      Case one{4, 2, 1, way.method, way.collective, trestleAvg};
      one.layers = {2};
      trestleTopK_t topk = make_typed(comm, one, trestleBfloat16);
      Elements gradient(trestleBfloat16, Doubles{3e38, -3e38});
      const Doubles given = gradient.values();
      Floats residual(2);
      ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), gradient.data(), topk), comm));
      EXPECT_EQ(gradient.values(), given) << one;
      EXPECT_EQ(residual, Floats(2)) << one;
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    }
  });
}

TEST(CompressedTypes, NansTravelAndAreCounted) {
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    for (const trestleDataType_t type : kTypes) {
      for (const Way& way : kWays) {
        Case one{2, 300, 0.01, way.method, way.collective};
        one.layers = {300};
        trestleTopK_t topk = make_typed(comm, one, type);
        Doubles values(300, 1);
        values[41] = values[299] = std::numeric_limits<double>::quiet_NaN();
        values[7] = -std::numeric_limits<double>::infinity();
        Elements gradient(type, values), residual(residual_type(type), 300), result(type, 300);
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
        EXPECT_EQ(stats_of(topk).lastNans, 2u);
        EXPECT_TRUE(std::isnan(result.at(41)) && std::isnan(result.at(299))) << one << ", rank " << rank;
        EXPECT_EQ(result.at(7), -std::numeric_limits<double>::infinity());
        EXPECT_EQ(residual.at(41), 0);
        EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
      }
    }
  });
}

// A chosen ratio, and the link's costs by messages whose values have another size than their indices.
TEST(CompressedTypes, ChooseAlike) {
  for (const trestleDataType_t type : kTypes) {
    ranks::on_threads({.ranks = 3, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
      config.type = type;
      config.reviewSteps = 3;
      trestleTopK_t topk = nullptr;
      ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 5000, &config), comm));
      Elements residual(residual_type(type), 5000), result(type, 5000);
      for (uint64_t step = 1; step <= 25; ++step) {
        Elements gradient(type, doubles_of(gradient_of(rank, step, 5000)));
        ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk), comm));
      }
      const trestleTopKStats_t stats = stats_of(topk);
      EXPECT_EQ(stats.steps, 25u);
      double all[3 * 3];
      const double mine[] = {stats.ratio, static_cast<double>(stats.elements), stats.startup + stats.perByte};
      ASSERT_TRUE(succeeded(trestleAllGather(mine, all, 3, trestleFloat64, comm, nullptr), comm));
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      for (size_t i = 0; i < std::size(all); ++i) EXPECT_EQ(all[i], mine[i % 3]) << i;
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    });
  }
}

}  // namespace
}  // namespace compressed
