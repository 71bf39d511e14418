#include "gradient/networks.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/text/names.h"
#include "base/text/value_text.h"
#include "gradient/network_texts.h"

namespace trestle {
namespace {

constexpr NamedComputeTime kComputeTimes[] = {
    {"resnet50@dear", "resnet50", {0.0732, 0.1464}, "derived from S_max 61.6 in DeAR's table II"},
    {"resnet50@2080ti", "resnet50", {0.0843, 0.1686}, "public throughput: 253.1 samples/s with batch 64"},
    {"resnet50@k80", "resnet50", {0.205, 0.41}, "assumed: 52 images/s with batch 32"},
    {"resnet101@deft", "resnet101", {0.059, 0.118}, "DeFT's table I"},
    {"vgg19@deft", "vgg19", {0.037166, 0.093119}, "DeFT's table II"},
    {"densenet201@dear", "densenet201", {0.0667, 0.1333}, "assumed 200 ms; DeAR's table II implies only 192 or more"},
    {"inceptionv4@dear", "inceptionv4", {0.1128, 0.2255}, "derived from S_max 59.8 in DeAR's table II"},
    {"googlenet@k80", "googlenet", {0.163, 0.327}, "assumed: 130 images/s with batch 64"},
    {"bert_base@dear", "bert_base", {0.0936, 0.1871}, "derived from S_max 25.5 in DeAR's table II"},
    {"bert_base@2080ti", "bert_base", {0.1003, 0.2005}, "public throughput: 212.8 samples/s with batch 64"},
    {"bert_large@dear", "bert_large", {0.1356, 0.2712}, "derived from S_max 12.1 in DeAR's table II"},
    {"bert_large_b8@2080ti", "bert_large", {0.0544, 0.1088}, "public throughput: 49 samples/s with batch 8"},
    {"gpt2@deft", "gpt2_chinese10", {0.169, 0.381}, "DeFT's table I"},
};

// Takes the text up to a separator, and the separator, from the front of `rest`.
std::string_view take(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  CHECK(read.ec == std::errc() && read.ptr == text.data() + text.size(), "a table of src/gradient/workloads is wrong");
  return value;
}

Network network_from(const NetworkText& text) {
  std::string_view rest = text.text;
  Network network{std::string(text.name), std::string(take(rest, '\n').substr(2)), {}};
  while (!rest.empty()) {
    std::string_view row = take(rest, '\n');
    NetworkTensor tensor;
    tensor.name = take(row, ' ');
    tensor.elements = number(take(row, ' '));
    tensor.work = number(row);
    network.tensors.push_back(std::move(tensor));
  }
  return network;
}

}  // namespace

uint64_t Network::parameters() const {
  uint64_t sum = 0;
  for (const NetworkTensor& tensor : tensors) sum += tensor.elements;
  return sum;
}

std::vector<std::string_view> network_names() {
  std::vector<std::string_view> names;
  for (const NetworkText& text : network_texts()) names.push_back(text.name);
  return names;
}

Result<Network> find_network(std::string_view name) {
  return network_from(*TRY(row_named(network_texts(), name, "a built-in network")));
}

std::span<const NamedComputeTime> compute_times() {
  return kComputeTimes;
}

GradientWorkload workload_of(const Network& network, const ComputeTime& time) {
  double work = 0;
  for (const NetworkTensor& tensor : network.tensors) work += static_cast<double>(tensor.work);
  GradientWorkload workload;
  for (const NetworkTensor& tensor : network.tensors) {
    const double share = static_cast<double>(tensor.work) / work;
    workload.tensors.push_back(
        {tensor.name, tensor.elements * sizeof(float), time.forward_s * share, time.backward_s * share});
  }
  return workload;
}

Result<GradientWorkload> built_in_workload(std::string_view name) {
  for (const NamedComputeTime& each : kComputeTimes) {
    if (each.name == name || each.network == name) return workload_of(TRY(find_network(each.network)), each.time);
  }
  if (find_network(name).ok()) {
    return Error{Code::kInvalidArgument, std::string(name) + " has no compute time; say forward and backward seconds"};
  }
  return unknown_name(name, "a built-in workload", names_of(kComputeTimes));
}

GradientWorkload compact(const GradientWorkload& workload) {
  GradientWorkload joined;
  for (const GradientTensor& tensor : workload.tensors) {
    const bool works = tensor.forward_s > 0 || tensor.backward_s > 0;
    if (works || joined.tensors.empty()) {
      joined.tensors.push_back(tensor);
    } else {
      joined.tensors.back().bytes += tensor.bytes;
    }
  }
  return joined;
}

}  // namespace trestle
