#include "rotrnn/fit/model.h"

#include "rotrnn/version.h"

namespace rotrnn::fit {

ModelFile model_file(const Fitted& model, const ModelFacts& facts) {
  const kernels::FeatureBank& bank = model.bank;
  ModelFile file;
  file.layer = "features";
  file.task = facts.task;
  file.version = kVersion;
  file.norm = Norm::none;
  file.shape = facts.shape;
  file.classes = facts.classes;
  file.preprocessing = facts.preprocessing;
  FeatureNumbers& f = file.features.emplace();
  f.states = static_cast<int64_t>(bank.states());
  f.taps = static_cast<int64_t>(bank.taps);
  f.differences = bank.differences;
  f.theta = file.keep(bank.theta);
  f.gamma_log = file.keep(bank.gamma_log);
  f.drive = file.keep(bank.drive);
  f.thresholds = file.keep(bank.thresholds);
  f.inputs = file.keep(bank.inputs);
  file.width = 6 * f.states;
  file.head = {file.keep(model.weight), file.keep(model.bias)};
  return file;
}

}  // namespace rotrnn::fit
