#include "cli/train/train_loss.h"

#include "cli/option_values.h"
#include "cli/train/train_options.h"

namespace trestle {

Result<std::optional<PreserverModel>> train_loss(const TrainOptions& options) {
  const std::string option = "--loss";
  if (options.loss.empty()) {
    if (!options.loss_epsilon.empty()) return invalid_argument("--loss-epsilon: goes with --loss");
    if (!options.loss_merged.empty()) return invalid_argument("--loss-merged: goes with --loss");
    return std::optional<PreserverModel>();
  }
  const std::vector<std::string> found =
      TRY(named_words(option, options.loss, "loss,least,rate,drift,deviation,batch"));
  PreserverModel model;
  model.loss = TRY(finite_value(option, found[0]));
  model.least_loss = TRY(finite_value(option, found[1]));
  model.rate = TRY(finite_value(option, found[2]));
  model.drift = TRY(finite_value(option, found[3]));
  model.deviation = TRY(real_value(option, found[4]));
  model.batch = TRY(real_value(option, found[5]));
  if (model.batch == 0) return invalid_argument("--loss: a batch of 0 samples");
  if (!options.loss_epsilon.empty()) model.epsilon = TRY(real_value("--loss-epsilon", options.loss_epsilon));
  if (options.loss_merged == "mean") model.merged = MergedUpdate::kMean;
  if (!options.loss_merged.empty() && options.loss_merged != "mean" && options.loss_merged != "sum")
    return invalid_argument("--loss-merged: \"" + options.loss_merged + "\" is neither sum nor mean");
  return std::optional(model);
}

}  // namespace trestle
