// The presets of `trestle train --preset`, one row each. Pure, any thread.
#pragma once

#include <span>
#include <string>

#include "cli/train/presets/preset.h"

namespace trestle {

std::span<const Preset> presets();
// Errors (kInvalidArgument) are one sentence that begins with --preset and has the names.
Result<const Preset*> find_preset(const std::string& name);

std::string preset_text(const Preset& preset, const PresetReport& report);
// One object: preset, title, source, conditions, tables (list of title, reference, columns, rows of label and cells;
// a cell has ours and, if it is known, reference), findings.
std::string preset_json(const Preset& preset, const PresetReport& report);
// A line for each of them.
std::string preset_list();

// MG-WFBP (arXiv 1912.09268): mgwfbp.cpp.
Result<PresetReport> mgwfbp_ring();
Result<PresetReport> mgwfbp_double_tree();
// DeAR (arXiv 2302.12445): dear.cpp.
Result<PresetReport> dear_most_speedups();
Result<PresetReport> dear_fused_steps();
// DeFT (arXiv 2503.16815): deft_tables.cpp, deft_figures.cpp.
Result<PresetReport> deft_buckets_of_vgg19();
Result<PresetReport> deft_preserver();
Result<PresetReport> deft_speedups();
Result<PresetReport> deft_bandwidths();
Result<PresetReport> deft_workers();
// FLEX, AR-Topk (arXiv 2312.02493): artopk.cpp.
Result<PresetReport> artopk_fastest();

}  // namespace trestle
