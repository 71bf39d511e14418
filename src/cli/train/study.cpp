#include "cli/train/study.h"

#include "cli/option_values.h"
#include "cli/train/study_text.h"
#include "study/paper.h"

namespace trestle {
namespace {

constexpr int64_t kMostSamples = 1 << 20;

}  // namespace

Result<std::string> study_iterations(const StudyOptions& options) {
  TrainingRequest request;
  request.systems = TRY(systems_in(options.topology_file));
  request.workload = options.workload;
  request.accelerator = options.accelerator;
  request.chunks = TRY(count_value("--chunks", options.chunks, 1, kMostChunks));
  if (!options.batch.empty()) request.samples = TRY(count_value("--batch", options.batch, 1, kMostSamples));
  if (options.overlap != "none" && options.overlap != "buckets") {
    return invalid_argument("--overlap: \"" + options.overlap + "\" is neither none nor buckets");
  }
  if (options.overlap == "buckets") request.overlap = GradientOverlap::kBuckets;
  const TrainingStudy study = TRY(study_training(request));
  return options.json ? training_json(study) : training_text(study);
}

}  // namespace trestle
