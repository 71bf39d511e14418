#include "cli/train/study_text.h"

#include "cli/json_writer.h"
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

std::string number_list(const std::vector<TrainingMean>& means, double TrainingMean::*member) {
  return json::array(means, [member](const TrainingMean& mean) { return json::number(mean.*member); });
}

std::string means_json(const std::vector<TrainingMean>& means) {
  return json::object({{"speedup", number_list(means, &TrainingMean::speedup)},
                       {"most_speedup", number_list(means, &TrainingMean::most_speedup)},
                       {"exposed_share", number_list(means, &TrainingMean::exposed_share)}});
}

std::string system_json(const SystemTraining& system) {
  const auto times = json::array(system.times, [](const TrainingTime& time) {
    return json::object({{"time_ns", json::number(time.iteration.time_ns)},
                         {"exposed_ns", json::number(time.iteration.exposed_ns())},
                         {"speedup", json::number(time.speedup)}});
  });
  return json::object({{"system", json::text(system.system)}, {"times", times}});
}

std::string workload_json(const WorkloadTraining& training) {
  const Workload& workload = *training.workload;
  std::vector<std::pair<std::string, std::string>> members = {
      {"name", json::text(workload.name)},
      {"source", json::text(workload.source)},
      {"assumptions", json::array(workload.assumptions, json::text)},
      {"parameters", json::number(static_cast<double>(parameters(workload)))},
      {"samples", json::number(training.samples)},
      {"compute_ns", json::number(training.compute_ns)},
      {"paper", json::object({{"themis", json::number(workload.paper.themis)},
                              {"themis_most", json::number(workload.paper.themis_most)},
                              {"ideal", json::number(workload.paper.ideal)}})}};
  if (!training.refused.empty()) {
    members.emplace_back("refused", json::text(training.refused));
    return json::object(members);
  }
  members.emplace_back("systems", json::array(training.systems, system_json));
  members.emplace_back("means", means_json(training.means));
  if (training.fitted_scale) {
    members.emplace_back("fitted_scale", json::number(*training.fitted_scale));
    members.emplace_back("fitted_means", means_json(training.fitted));
  }
  return json::object(members);
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
  return json::object({{"assumptions", json::array(assumptions(study), json::text)},
                       {"accelerator", json::object({{"peak_tflops", json::number(accelerator.peak_tflops)},
                                                     {"attained", json::number(accelerator.attained)},
                                                     {"memory_gbytes", json::number(accelerator.memory_gbytes)}})},
                       {"overlap", json::text(study.overlap == GradientOverlap::kNone ? "none" : "buckets")},
                       {"chunks", json::number(study.chunks)},
                       {"variants", json::array(study.variants, json::text)},
                       {"workloads", json::array(study.workloads, workload_json)}}) +
         "\n";
}

}  // namespace trestle
