#include "rotrnn/training/guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace rotrnn {
namespace {

bool finite(const torch::Tensor& tensor) {
  return torch::isfinite(tensor).all().item<bool>();
}

// Without the sign that a NaN can have and that says nothing.
std::string text_of(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

// The numbers of the examples of a batch.
std::vector<int64_t> examples_of(const std::vector<Batch>& parts, int64_t towers) {
  std::vector<int64_t> numbers;
  for (const Batch& batch : parts) {
    for (const int64_t sequence : batch.sequences) {
      const int64_t number = sequence / towers;
      if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
    }
  }
  return numbers;
}

}  // namespace

StepGuard::StepGuard(SequenceModelImpl& model) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    const auto* norm = dynamic_cast<const NormImpl*>(module.get());
    if (norm == nullptr || !norm->running_mean.defined()) continue;
    for (const torch::Tensor& t : {norm->running_mean, norm->running_var}) {
      statistics_.push_back(t);
      copies_.push_back(t.clone());
    }
  }
}

void StepGuard::remember() {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < copies_.size(); ++i) copies_[i].copy_(statistics_[i]);
}

void StepGuard::undo() {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < copies_.size(); ++i) statistics_[i].copy_(copies_[i]);
}

std::string non_finite_parameter(const AdamW& optimiser) {
  if (optimiser.finite()) return "";
  for (const auto& slot : optimiser.slots()) {
    if (!finite(slot.parameter) || !finite(slot.first) || !finite(slot.second)) return slot.name;
  }
  return "";
}

NonFinite find_non_finite(const AdamW& optimiser, const std::vector<Batch>& parts, int64_t towers) {
  NonFinite out;
  out.parameter = non_finite_parameter(optimiser);
  out.in_weights = !out.parameter.empty();
  for (const auto& slot : optimiser.slots()) {
    if (out.parameter.empty() && !finite(slot.parameter.grad())) out.parameter = slot.name;
  }
  out.examples = examples_of(parts, towers);
  return out;
}

nlohmann::ordered_json to_json(const NonFinite& found) {
  return {{"step", found.step},           {"split", "skipped"},
          {"loss", text_of(found.loss)},  {"gradient_norm", text_of(found.gradient_norm)},
          {"parameter", found.parameter}, {"examples", found.examples}};
}

std::string describe(const NonFinite& found, const Examples& examples) {
  constexpr size_t kMost = 8;
  std::vector<std::string> names;
  for (const int64_t i : found.examples) {
    if (names.size() == kMost) break;
    const std::string& name = examples.record(i).name;
    names.push_back(name.empty() ? fmt::format("{}", i) : fmt::format("{} ({})", i, name));
  }
  const std::string where = found.parameter.empty() ? "all gradients finite"
                            : found.in_weights
                                ? fmt::format("\"{}\" itself not finite", found.parameter)
                                : fmt::format("gradient of \"{}\" not finite", found.parameter);
  return fmt::format("step {}: loss {}, gradient norm {}, {}; training examples {}{}", found.step,
                     text_of(found.loss), text_of(found.gradient_norm), where,
                     fmt::join(names, ", "), found.examples.size() > kMost ? ", …" : "");
}

}  // namespace rotrnn
