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

}  // namespace

StepGuard::StepGuard(SequenceModelImpl& model) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> values;
  for (const auto& entry : model.named_modules("", /*include_self=*/false)) {
    const auto* norm = dynamic_cast<const NormImpl*>(entry.value().get());
    if (norm == nullptr || !norm->running_mean.defined()) continue;
    statistics_.emplace_back(entry.key() + ".running_mean", norm->running_mean);
    statistics_.emplace_back(entry.key() + ".running_var", norm->running_var);
  }
  if (statistics_.empty()) return;
  for (const auto& [name, tensor] : statistics_) values.push_back(tensor.flatten());
  flat_ = torch::cat(values);
  copy_ = flat_.clone();
  int64_t at = 0;
  for (auto& [name, tensor] : statistics_) {
    tensor.set_data(flat_.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
}

void StepGuard::remember() {
  if (flat_.defined()) copy_.copy_(flat_);
}

void StepGuard::undo() {
  if (flat_.defined()) flat_.copy_(copy_);
}

bool StepGuard::finite() const {
  // A sum that overflows without any that is not finite is of no use either.
  return !flat_.defined() || std::isfinite(flat_.sum().item<double>());
}

std::string StepGuard::non_finite() const {
  for (const auto& [name, tensor] : statistics_) {
    if (!rotrnn::finite(tensor)) return name;
  }
  return "";
}

std::string non_finite_parameter(const AdamW& optimiser) {
  if (optimiser.finite()) return "";
  for (const auto& slot : optimiser.slots()) {
    if (!finite(slot.parameter) || !finite(slot.first) || !finite(slot.second)) return slot.name;
  }
  return "";
}

NonFinite find_non_finite(const AdamW& optimiser, const StepGuard& guard,
                          const std::vector<Batch>& parts) {
  NonFinite out;
  out.parameter = non_finite_parameter(optimiser);
  out.in_weights = !out.parameter.empty();
  for (const auto& slot : optimiser.slots()) {
    if (out.parameter.empty() && !finite(slot.parameter.grad())) out.parameter = slot.name;
  }
  if (out.parameter.empty()) out.parameter = guard.non_finite();
  for (const Batch& batch : parts) {
    out.examples.insert(out.examples.end(), batch.examples.begin(), batch.examples.end());
  }
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
                            : found.parameter.find(".running_") != std::string::npos
                                ? fmt::format("\"{}\" not finite", found.parameter)
                                : fmt::format("gradient of \"{}\" not finite", found.parameter);
  return fmt::format("step {}: loss {}, gradient norm {}, {}; training examples {}{}", found.step,
                     text_of(found.loss), text_of(found.gradient_norm), where,
                     fmt::join(names, ", "), found.examples.size() > kMost ? ", …" : "");
}

}  // namespace rotrnn
