#include <algorithm>

#include "cli/sim/lanes_text.h"
#include "cli/sim/paper_study_text.h"
#include "cli/text_line.h"
#include "study/paper_systems.h"

namespace trestle {
namespace {

constexpr uint32_t kSparkWidth = 32;

std::string heading(const PaperStudy& study, const char* each_format, const char* first) {
  std::string text = first;
  for (const ScheduleVariant& variant : study.variants) text += line(each_format, variant.name.c_str());
  return text;
}

std::string points_text(const PaperStudy& study) {
  std::string text = heading(study, "  %24s", "system                  MB");
  text += "     ideal     fluid\n                          ";
  for (size_t v = 0; v < study.variants.size(); ++v) text += "        us   util  speedup";
  text += "        us  bound us\n";
  for (const StudyResult& system : study.systems) {
    for (const StudyPoint& point : system.points) {
      text += line("%-20s %5llu", system.name.c_str(), static_cast<unsigned long long>(point.size_mib));
      for (const StudyRun& run : point.runs) {
        text += line("%10.1f %6.2f %8.3f", run.time_ns / 1000, 100 * run.utilization,
                     point.runs.front().time_ns / run.time_ns);
      }
      text += line("%10.1f %9.1f\n", point.ideal_time_ns / 1000, point.fluid_bound_ns / 1000);
    }
  }
  return text;
}

bool comparable(const PaperStudy& study) {
  return study.paper_systems && study.collective == Collective::kAllReduce && !study.reducing_switches;
}

std::string means_text(const PaperStudy& study) {
  std::string text = "mean over systems and sizes        utilisation %   speed-up   highest      paper:\n";
  const bool as_paper = comparable(study) && study.chunks == 64;
  for (size_t v = 0; v < study.variants.size(); ++v) {
    const StudyMean& mean = study.means[v];
    const std::string& name = study.variants[v].name;
    text += line("  %-32s %13.2f %10.2f %9.2f", name.c_str(), 100 * mean.utilization, mean.speedup, mean.most_speedup);
    if (as_paper && name == "baseline") text += line("      %.2f %%", 100 * kPaperReport.baseline_utilization);
    if (as_paper && name == "themis+fifo") {
      text += line("      %.2f %%, %.2f", 100 * kPaperReport.themis_fifo_utilization, kPaperReport.themis_fifo_speedup);
    }
    if (as_paper && name == "themis+scf") {
      text += line("      %.2f %%, %.2f, highest %.2f", 100 * kPaperReport.themis_scf_utilization,
                   kPaperReport.themis_scf_speedup, kPaperReport.most_speedup);
    }
    text += "\n";
  }
  return text + line("  %-32s %13.2f %10.2f %9.2f\n", "ideal", 100 * study.ideal.utilization, study.ideal.speedup,
                     study.ideal.most_speedup);
}

std::string sweep_text(const PaperStudy& study) {
  std::string text = "utilisation % by number of chunks (mean of the smallest and the largest size)\n";
  text += heading(study, " %12s", "system               chunks") + "\n";
  for (const SweepPoint& point : study.sweep) {
    text += line("%-20s %6u", point.system.c_str(), point.chunks);
    for (const double utilization : point.utilization) text += line(" %12.2f", 100 * utilization);
    text += "\n";
  }
  return text;
}

// The study's mean over the systems, in the form in which the paper reports it: from the fewest to the most chunks.
std::string sweep_mean(const PaperStudy& study, uint32_t chunks, size_t variant) {
  double sum = 0;
  double points = 0;
  for (const SweepPoint& point : study.sweep) {
    if (point.chunks != chunks) continue;
    sum += point.utilization[variant];
    points += 1;
  }
  return points > 0 ? line("%.2f", 100 * sum / points) : "-";
}

std::string sweep_means_text(const PaperStudy& study) {
  std::string text;
  if (!comparable(study) || study.sweep.empty()) return text;
  const uint32_t fewest = study.sweep.front().chunks;
  const uint32_t most = study.sweep.back().chunks;
  for (size_t v = 0; v < study.variants.size(); ++v) {
    const std::string& name = study.variants[v].name;
    text += line("  %-14s %u to %u chunks: ", name.c_str(), fewest, most) + sweep_mean(study, fewest, v) + " to " +
            sweep_mean(study, most, v) + " %";
    const bool fifo = name == "themis+fifo";
    if (fifo || name == "themis+scf") {
      const double(&sweep)[2] = fifo ? kPaperReport.themis_fifo_sweep : kPaperReport.themis_scf_sweep;
      text += line(", paper: %.2f to %.2f %%", 100 * sweep[0], 100 * sweep[1]);
    }
    text += "\n";
  }
  return text;
}

std::string gaps_text(const PaperStudy& study) {
  if (study.gaps.empty()) return "";
  std::string text = line(
      "the same schedules with phases as steps (model %s), oldest phase first: longer by %%, messages whole / in %u "
      "segments\n",
      to_string(study.gap_model), kStudySegments);
  text += heading(study, " %16s", "system                  MB chunks") +
          ("   " + study.variants.back().name + " beats the baseline by: paper's model, steps\n");
  for (const GapPoint& point : study.gaps) {
    text +=
        line("%-20s %5llu %6u", point.system.c_str(), static_cast<unsigned long long>(point.size_mib), point.chunks);
    for (const StepsGap& gap : point.gaps) text += line("   %6.1f /%6.1f", 100 * gap.whole, 100 * gap.cut);
    text += line("   %10.3f %10.3f\n", point.paper.front().time_ns / point.paper.back().time_ns,
                 point.gaps.front().cut_time_ns / point.gaps.back().cut_time_ns);
  }
  return text;
}

std::string activity_text(const PaperStudy& study) {
  std::string text;
  for (const StudyResult& system : study.systems) {
    if (system.largest.empty()) continue;
    text += line("activity of the dimensions over time, %s, %llu MB (each to its own end)\n", system.name.c_str(),
                 static_cast<unsigned long long>(system.points.back().size_mib));
    for (size_t v = 0; v < system.largest.size(); ++v) {
      const SimView& view = system.largest[v];
      for (const SimLane& lane : view.lanes) {
        const bool first = &lane == &view.lanes.front();
        text += line("  %-14s dim %d |", first ? study.variants[v].name.c_str() : "", lane.dimension + 1);
        text += sparkline(activity(lane, view.time_ns, 2 * kSparkWidth));
        text += line("| %5.1f %%\n", 100 * lane.busy_ns / view.time_ns);
      }
    }
  }
  return text;
}

}  // namespace

std::string study_text(const PaperStudy& study) {
  std::string text = std::string(to_string(study.collective)) + " in " + std::to_string(study.chunks) +
                     " chunks, the model of the Themis paper (arXiv 2110.04478)";
  text += study.reducing_switches ? ", switches reduce; MB = 2^20 bytes" : "; MB = 2^20 bytes";
  if (study.collective == Collective::kAllGather) text += ", of the gathered data";
  text += "\n\n" + points_text(study) + "\n" + means_text(study) + "\n" + sweep_text(study) + sweep_means_text(study) +
          "\n";
  text += gaps_text(study) + "\n" + activity_text(study);
  return text;
}

}  // namespace trestle
