#include "cli/train/study_text.h"

#include "base/text/json.h"
#include "cli/text_line.h"

namespace trestle {
namespace {

std::vector<std::string> assumptions(const TrainingStudy& study) {
  std::vector<std::string> all;
  const Accelerator& accelerator = study.accelerator;
  all.push_back(
      line("accelerator: %g TFLOP/s in half precision, %g %% of it attained, memory %g GB/s (default: data sheet "
           "of the A100; the attained part is an assumption)",
           accelerator.peak_tflops, 100 * accelerator.attained, accelerator.memory_gbytes));
  if (study.overlap == GradientOverlap::kBuckets) {
    all.push_back(
        line("requested: gradients of layers are all-reduced in pieces of at least %.0f MiB beside the "
             "backward pass",
             static_cast<double>(kBucketBytes) / (1 << 20)));
  }
  if (study.chunks != 64) all.push_back("requested: " + std::to_string(study.chunks) + " chunks");
  for (const std::string_view text : common_assumptions()) all.emplace_back(text);
  return all;
}

// The paper's result for a variant; 0 if it gives none.
double reported(const PaperSpeedups& paper, const std::string& variant) {
  if (variant == "themis") return paper.themis;
  return variant == "ideal" ? paper.ideal : 0;
}

std::string difference(double ours, double papers) {
  return papers > 0 ? line("%6.2f %+6.2f", papers, ours - papers) : std::string(13, ' ');
}

std::string means_text(const TrainingStudy& study, const WorkloadTraining& training) {
  std::string text = "  mean of systems   speed-up  most  exposed";
  if (study.papers_systems) text += "   paper  diff";
  if (training.fitted_scale) text += line("    compute x %.3f  diff", *training.fitted_scale);
  text += '\n';
  for (size_t v = 0; v < study.variants.size(); ++v) {
    const TrainingMean& mean = training.means[v];
    const double paper = study.papers_systems ? reported(training.workload->paper, study.variants[v]) : 0;
    text += line("  %-18s %6.3f %6.2f %7.1f%%  ", study.variants[v].c_str(), mean.speedup, mean.most_speedup,
                 100 * mean.exposed_share);
    if (study.papers_systems) text += difference(mean.speedup, paper);
    if (training.fitted_scale) {
      text += line("     %10.3f", training.fitted[v].speedup);
      if (paper > 0) text += line("  %+6.2f", training.fitted[v].speedup - paper);
    }
    text += '\n';
  }
  if (!study.papers_systems) return text;
  return text + line("  (the paper's most: themis %.2f)\n", training.workload->paper.themis_most);
}

std::string systems_text(const TrainingStudy& study, const WorkloadTraining& training) {
  std::string text = "  iteration, ms (exposed communication)\n";
  text += line("  %-20s", "");
  for (const std::string& variant : study.variants) text += line(" %20s", variant.c_str());
  text += '\n';
  for (const SystemTraining& system : training.systems) {
    text += line("  %-20s", system.system.c_str());
    for (const TrainingTime& time : system.times) {
      const IterationTime& each = time.iteration;
      text += line(" %20s", line("%.3f (%.3f)", each.time_ns / 1e6, each.exposed_ns() / 1e6).c_str());
    }
    text += '\n';
  }
  return text;
}

std::string workload_text(const TrainingStudy& study, const WorkloadTraining& training) {
  const Workload& workload = *training.workload;
  std::string text = "\n" + std::string(workload.name) + ": " + std::string(workload.summary) + "; " +
                     line("%.1f million parameters, ", static_cast<double>(parameters(workload)) / 1e6) +
                     line("batch %u, compute %.3f ms\n", training.samples, training.compute_ns / 1e6);
  text += "  source: " + std::string(workload.source) + "\n";
  for (const std::string_view assumption : workload.assumptions) text += "  assumed: " + std::string(assumption) + "\n";
  if (!training.refused.empty()) return text + "  not possible: " + training.refused + "\n";
  return text + systems_text(study, training) + means_text(study, training);
}

Json number_list(const std::vector<TrainingMean>& means, double TrainingMean::*member) {
  return json_list(means, [member](const TrainingMean& mean) { return rounded(mean.*member); });
}

Json means_json(const std::vector<TrainingMean>& means) {
  return Json::object({{"speedup", number_list(means, &TrainingMean::speedup)},
                       {"most_speedup", number_list(means, &TrainingMean::most_speedup)},
                       {"exposed_share", number_list(means, &TrainingMean::exposed_share)}});
}

Json training_json(const SystemTraining& system) {
  const auto times = json_list(system.times, [](const TrainingTime& time) {
    return Json::object({{"time_ns", rounded(time.iteration.time_ns)},
                         {"exposed_ns", rounded(time.iteration.exposed_ns())},
                         {"speedup", rounded(time.speedup)}});
  });
  return Json::object({{"system", system.system}, {"times", times}});
}

Json workload_json(const WorkloadTraining& training) {
  const Workload& workload = *training.workload;
  Json members = {{"name", workload.name},
                  {"source", workload.source},
                  {"assumptions", json_list(workload.assumptions)},
                  {"parameters", parameters(workload)},
                  {"samples", training.samples},
                  {"compute_ns", rounded(training.compute_ns)},
                  {"paper", Json::object({{"themis", rounded(workload.paper.themis)},
                                          {"themis_most", rounded(workload.paper.themis_most)},
                                          {"ideal", rounded(workload.paper.ideal)}})}};
  if (!training.refused.empty()) {
    members["refused"] = training.refused;
    return members;
  }
  members["systems"] = json_list(training.systems, training_json);
  members["means"] = means_json(training.means);
  if (training.fitted_scale) {
    members["fitted_scale"] = rounded(*training.fitted_scale);
    members["fitted_means"] = means_json(training.fitted);
  }
  return members;
}

}  // namespace

std::string training_text(const TrainingStudy& study) {
  std::string text = "Training iterations (Themis, arXiv 2110.04478, section 6.2). Assumptions:\n";
  for (const std::string& assumption : assumptions(study)) text += "  " + assumption + "\n";
  if (study.papers_systems)
    text += "\"compute x\": all compute is scaled by one factor so that the mean ideal speed-up equals the paper's\n";
  for (const WorkloadTraining& training : study.workloads) text += workload_text(study, training);
  return text;
}

std::string training_json(const TrainingStudy& study) {
  const Accelerator& accelerator = study.accelerator;
  return json_text(Json::object({{"assumptions", assumptions(study)},
                                 {"accelerator", Json::object({{"peak_tflops", rounded(accelerator.peak_tflops)},
                                                               {"attained", rounded(accelerator.attained)},
                                                               {"memory_gbytes", rounded(accelerator.memory_gbytes)}})},
                                 {"overlap", study.overlap == GradientOverlap::kNone ? "none" : "buckets"},
                                 {"chunks", study.chunks},
                                 {"variants", study.variants},
                                 {"workloads", json_list(study.workloads, workload_json)}})) +
         "\n";
}

}  // namespace trestle
