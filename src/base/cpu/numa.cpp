#include "base/cpu/numa.h"

#include <sched.h>

#include <algorithm>

#include "base/files/kernel_file.h"
#include "base/text/value_text.h"

namespace trestle {

namespace {

constexpr int kMost = 65'535;  // the highest number: a mistaken range must not fill the memory

}  // namespace

Result<std::vector<int>> read_processors(const std::string& path) {
  auto numbers = parse_processors(TRY(first_line(path)));
  if (!numbers.ok()) return Error{Code::kSystemError, path + ": " + numbers.error().message};
  return numbers;
}

Result<std::vector<int>> parse_processors(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string& range : split(text, ',')) {
    const size_t dash = range.find('-');
    const auto low = parse_integer(std::string_view(range).substr(0, dash));
    const auto high = dash == std::string::npos ? low : parse_integer(std::string_view(range).substr(dash + 1));
    if (!low.ok() || !high.ok() || low.value() < 0 || high.value() < low.value() || high.value() > kMost)
      return Error{Code::kInvalidArgument, "'" + std::string(text) + "' is not a list of numbers such as 0-3,8"};
    for (int64_t number = low.value(); number <= high.value(); ++number) numbers.push_back(static_cast<int>(number));
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string processors_text(const std::vector<int>& processors) {
  std::string text;
  for (size_t first = 0, last = 0; first < processors.size(); first = last + 1) {
    for (last = first; last + 1 < processors.size() && processors[last + 1] == processors[last] + 1;) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(processors[first]);
    if (last != first) text += "-" + std::to_string(processors[last]);
  }
  return text;
}

std::vector<int> processors_of(const std::vector<uint64_t>& mask) {
  std::vector<int> processors;
  for (size_t bit = 0; bit < mask.size() * 64; ++bit) {
    if ((mask[bit / 64] >> bit % 64 & 1) != 0) processors.push_back(static_cast<int>(bit));
  }
  return processors;
}

Result<std::vector<NumaNode>> all_numa_nodes(const std::string& folder) {
  std::vector<NumaNode> nodes;
  for (const int number : TRY(read_processors(folder + "/online")))
    nodes.push_back({number, TRY(read_processors(folder + "/node" + std::to_string(number) + "/cpulist"))});
  return nodes;
}

Result<std::vector<NumaNode>> numa_nodes(const std::string& folder, const std::vector<uint64_t>& mask) {
  std::vector<NumaNode> nodes = TRY(all_numa_nodes(folder));
  const std::vector<int> usable = processors_of(mask);
  const auto is_usable = [&](int one) { return std::binary_search(usable.begin(), usable.end(), one); };
  for (NumaNode& node : nodes) std::erase_if(node.processors, [&](int one) { return !is_usable(one); });
  std::erase_if(nodes, [](const NumaNode& node) { return node.processors.empty(); });
  return nodes;
}

bool bind_thread(const std::vector<int>& processors) {
  if (processors.empty()) return false;
  const size_t most = static_cast<size_t>(*std::max_element(processors.begin(), processors.end())) + 1;
  const size_t bytes = CPU_ALLOC_SIZE(most);
  std::vector<cpu_set_t> mask((bytes + sizeof(cpu_set_t) - 1) / sizeof(cpu_set_t));
  for (const int processor : processors) CPU_SET_S(static_cast<size_t>(processor), bytes, mask.data());
  return sched_setaffinity(0, bytes, mask.data()) == 0;
}

}  // namespace trestle
