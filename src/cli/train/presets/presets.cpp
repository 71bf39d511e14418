#include "cli/train/presets/presets.h"

#include <algorithm>
#include <cmath>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "cli/option_values.h"
#include "cli/text_line.h"

namespace trestle {
namespace {

constexpr Preset kPresets[] = {
    {"mgwfbp_fig10", "ResNet-50 on 4 to 2048 workers in a ring", "MG-WFBP (arXiv 1912.09268), figure 10", mgwfbp_ring},
    {"mgwfbp_fig11", "ResNet-50 on 4 to 2048 workers with double binary trees", "MG-WFBP (arXiv 1912.09268), figure 11",
     mgwfbp_double_tree},
    {"dear_table2", "the most by which 64 workers are faster than one", "DeAR (arXiv 2302.12445), table II",
     dear_most_speedups},
    {"dear_fig7", "steps of five networks with fused messages on 64 workers", "DeAR (arXiv 2302.12445), figure 7",
     dear_fused_steps},
    {"deft_table2", "VGG-19 in six buckets", "DeFT (arXiv 2503.16815), table II", deft_buckets_of_vgg19},
    {"deft_table5", "the loss after merged updates", "DeFT (arXiv 2503.16815), table V", deft_preserver},
    {"deft_fig10", "steps of three networks on 16 workers", "DeFT (arXiv 2503.16815), figure 10", deft_speedups},
    {"deft_fig14", "the same at other bandwidths", "DeFT (arXiv 2503.16815), figure 14", deft_bandwidths},
    {"deft_fig15", "the same on other numbers of workers", "DeFT (arXiv 2503.16815), figure 15", deft_workers},
    {"artopk_table6", "the fastest collective of a compressed exchange on 8 workers",
     "FLEX, AR-Topk (arXiv 2312.02493), table VI", artopk_fastest},
};

}  // namespace

std::span<const Preset> presets() {
  return kPresets;
}

Result<const Preset*> find_preset(const std::string& name) {
  const auto found = row_named(kPresets, name, "a preset");
  if (!found.ok()) return invalid_argument("--preset: " + found.error().message);
  return found;
}

std::string preset_list() {
  std::string text = line("\n%-15s %-43s %s\n", "preset", "of", "what it calculates");
  for (const Preset& preset : kPresets) {
    text += line("%-15s %-43s %s\n", std::string(preset.name).c_str(), std::string(preset.source).c_str(),
                 std::string(preset.title).c_str());
  }
  return text;
}

}  // namespace trestle
