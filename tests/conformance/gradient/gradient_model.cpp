#include "conformance/gradient/gradient_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace gradients {
namespace {

using ranks::succeeded;

template <class T>
void write(std::vector<std::byte>& bytes, size_t i, double value) {
  const T element = static_cast<T>(value);
  std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
}

void write(std::vector<std::byte>& bytes, trestleDataType_t type, size_t i, double value) {
  if (type == trestleFloat32) write<float>(bytes, i, value);
  if (type == trestleFloat64) write<double>(bytes, i, value);
  if (type == trestleInt32) write<int32_t>(bytes, i, value);
}

double read(const std::byte* bytes, trestleDataType_t type, size_t i) {
  if (type == trestleFloat32) {
    float value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
  }
  if (type == trestleFloat64) {
    double value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    return value;
  }
  int32_t value;
  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
  return value;
}

}  // namespace

size_t Tensor::bytes() const {
  return count * (type == trestleFloat64 ? 8 : 4);
}

Model::Model(std::vector<Tensor> tensors, Memory memory, int rank, Numbers numbers)
    : tensors_(std::move(tensors)), memory_(memory), rank_(rank), numbers_(numbers), moving_(tensors_.size()) {
  size_t at = 0;
  for (const Tensor& tensor : tensors_) {
    offsets_.push_back(at);
    at += tensor.bytes() + (memory == Memory::kTogether ? 0 : 24);
    parameters_.emplace_back(tensor.bytes());
  }
  block_.resize(at + 8);
}

void Model::register_in(trestleGrad_t grad, bool parameters) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    int number = -1;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, ("w" + std::to_string(i)).c_str(), tensors_[i].count,
                                              tensors_[i].type, memory_ == Memory::kMoving ? nullptr : gradient(i),
                                              parameters ? parameter(i) : nullptr, &number)));
    ASSERT_EQ(number, static_cast<int>(i));
  }
}

double Model::number(int rank, size_t tensor, uint64_t step, size_t i) const {
  ranks::Random random{(static_cast<uint64_t>(rank) * 1000003 + tensor) * 1000003 + step * 7919 + i};
  (void)random.next();
  if (numbers_ == Numbers::kWhole) return static_cast<double>(random.below(17)) - 8;
  return static_cast<double>(static_cast<int64_t>(random.next() >> 20) - (int64_t{1} << 43)) * 1e-9;
}

std::vector<std::byte> Model::values(size_t tensor, uint64_t step) const {
  const Tensor& shape = tensors_[tensor];
  std::vector<std::byte> bytes(shape.bytes());
  for (size_t i = 0; i < shape.count; ++i) write(bytes, shape.type, i, number(rank_, tensor, step, i));
  return bytes;
}

std::vector<std::vector<std::byte>> Model::whole_sums(int ranks, uint64_t first, uint64_t last) const {
  std::vector<std::vector<std::byte>> sums;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    sums.emplace_back(tensors_[t].bytes());
    for (size_t i = 0; i < tensors_[t].count; ++i) {
      double sum = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        for (uint64_t step = first; step <= last; ++step) sum += number(rank, t, step, i);
      }
      write(sums.back(), tensors_[t].type, i, sum);
    }
  }
  return sums;
}

void Model::fill(uint64_t step) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::vector<std::byte> bytes = values(i, step);
    if (memory_ == Memory::kMoving) moving_[i] = std::vector<std::byte>(bytes.size() + 8 * (step % 5));
    std::copy(bytes.begin(), bytes.end(), gradient(i));
  }
}

std::byte* Model::gradient(size_t i) {
  return memory_ == Memory::kMoving ? moving_[i].data() : block_.data() + offsets_[i];
}

void Model::step(trestleGrad_t grad, uint64_t number, uint64_t seed) {
  fill(number);
  make_ready(grad, seed);
  ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
  ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
}

void* Model::given(size_t tensor) {
  return memory_ == Memory::kMoving ? gradient(tensor) : nullptr;
}

void Model::make_ready(trestleGrad_t grad, uint64_t seed) {
  std::vector<size_t> order(tensors_.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  ranks::Random random{seed};
  for (size_t i = order.size(); seed != 0 && i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (const size_t i : order) ASSERT_TRUE(succeeded(trestleGradReady(grad, static_cast<int>(i), given(i))));
}

std::vector<std::vector<std::byte>> Model::sums(trestleComm_t comm, uint64_t step,
                                                const std::vector<std::pair<size_t, size_t>>& groups, bool halves,
                                                trestleRedOp_t op) {
  std::vector<std::vector<std::byte>> sums(tensors_.size());
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    for (const trestleDataType_t type : {trestleFloat32, trestleFloat64, trestleInt32}) {
      std::vector<std::byte> fused;
      size_t count = 0;
      for (size_t i = group->first; i <= group->second; ++i) {
        if (tensors_[i].type != type) continue;
        const std::vector<std::byte> bytes = values(i, step);
        fused.insert(fused.end(), bytes.begin(), bytes.end());
        count += tensors_[i].count;
      }
      if (halves) {
        trestleRequest_t request = nullptr;
        EXPECT_TRUE(succeeded(
            trestleAllReduceStart(fused.data(), fused.data(), count, type, op, comm, nullptr, &request), comm));
        EXPECT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr), comm));
        EXPECT_TRUE(succeeded(trestleRequestWait(request), comm));
        EXPECT_TRUE(succeeded(trestleRequestFree(request), comm));
      } else {
        EXPECT_TRUE(succeeded(trestleAllReduce(fused.data(), fused.data(), count, type, op, comm, nullptr), comm));
        EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      }
      const std::byte* at = fused.data();
      for (size_t i = group->first; i <= group->second; ++i) {
        if (tensors_[i].type != type) continue;
        sums[i].assign(at, at + tensors_[i].bytes());
        at += tensors_[i].bytes();
      }
    }
  }
  return sums;
}

std::string Model::compare(const std::vector<std::vector<std::byte>>& expected, bool exact) {
  constexpr double kLargest = 1 << 14;  // of number()
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& shape = tensors_[i];
    for (size_t k = 0; k < shape.count; ++k) {
      const double is = read(gradient(i), shape.type, k);
      const double should = read(expected[i].data(), shape.type, k);
      const bool same = exact || shape.type == trestleInt32 ? is == should : std::abs(is - should) <= 1e-6 * kLargest;
      if (same) continue;
      return "tensor " + std::to_string(i) + ", element " + std::to_string(k) + " of " + std::to_string(shape.count) +
             ": " + std::to_string(is) + " instead of " + std::to_string(should);
    }
  }
  return "";
}

std::string Model::compare_parameters(const std::vector<std::vector<std::byte>>& expected) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (parameters_[i] != expected[i]) return "tensor " + std::to_string(i) + " has another parameter";
  }
  return "";
}

trestleGrad_t make(const std::vector<trestleComm_t>& comms, const trestleGradConfig_t& config) {
  trestleGrad_t grad = nullptr;
  EXPECT_TRUE(succeeded(trestleGradCreate(&grad, comms.data(), static_cast<int>(comms.size()), &config)));
  return grad;
}

trestleGrad_t make(trestleComm_t comm, trestleGradUpdate_t update) {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.update = update;
  return make(std::vector{comm}, config);
}

trestleGradStats_t stats_of(trestleGrad_t grad) {
  trestleGradStats_t stats = TRESTLE_GRAD_STATS_INITIALIZER;
  EXPECT_TRUE(succeeded(trestleGradGetStats(grad, &stats)));
  return stats;
}

void set_times(trestleGrad_t grad, int tensors) {
  const std::vector<double> times(static_cast<size_t>(tensors), 1e-3);
  const trestleGradCost_t whole{2e-3, 1e-8}, half{1e-3, 5e-9};
  ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, times.data(), times.data(), &whole, &half, &half)));
}

std::string plan_json(trestleGrad_t grad) {
  size_t size = 0;
  EXPECT_TRUE(succeeded(trestleGradPlanJson(grad, nullptr, &size)));
  std::string text(size, '?');
  EXPECT_TRUE(succeeded(trestleGradPlanJson(grad, text.data(), &size)));
  EXPECT_EQ(size, text.size());
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  return text;
}

std::vector<std::pair<size_t, size_t>> groups_of(const std::string& json, const std::string& member) {
  std::vector<std::pair<size_t, size_t>> groups;
  size_t at = json.find("\"" + member + "\":[");
  EXPECT_NE(at, std::string::npos) << json;
  at = json.find('[', at) + 1;
  while (json[at] == '[' || json[at] == ',') {
    at = json.find('[', at) + 1;
    size_t length = 0;
    const size_t first = std::stoul(json.substr(at), &length);
    at += length + 1;
    const size_t last = std::stoul(json.substr(at), &length);
    at += length + 1;
    groups.emplace_back(first, last);
  }
  return groups;
}

}  // namespace gradients
