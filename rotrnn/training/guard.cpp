#include "rotrnn/training/guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace rotrnn {
namespace {

// Without the sign that a NaN can have, which means nothing.
std::string text_of(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

}  // namespace

void StepGuard::remember() {
  copy_ = weights_.buffers();
}

void StepGuard::undo() {
  weights_.buffers() = copy_;
}

bool StepGuard::finite() const {
  return all_finite(weights_.buffers());
}

std::string StepGuard::non_finite() const {
  for (const auto& b : weights_.layout().buffers) {
    if (!b.integer && !all_finite(weights_.find(b.name))) return b.name;
  }
  return "";
}

std::string non_finite_parameter(const Weights& weights, const Optimiser& optimiser) {
  for (const auto& p : weights.layout().parameters) {
    for (const FlatArray* array :
         {&weights.parameters(), &optimiser.first(), &optimiser.second()}) {
      if (!all_finite(array->of(p))) return p.name;
    }
  }
  return "";
}

NonFinite find_non_finite(const Weights& weights, const Optimiser& optimiser,
                          const FlatArray& gradients, const StepGuard& guard,
                          const std::vector<Batch>& parts) {
  NonFinite out;
  out.parameter = non_finite_parameter(weights, optimiser);
  out.in_weights = !out.parameter.empty();
  for (const auto& p : weights.layout().parameters) {
    if (out.parameter.empty() && !all_finite(gradients.of(p))) out.parameter = p.name;
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
