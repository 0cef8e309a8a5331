#include "rotrnn/network/features/feature_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rotrnn {
namespace {

constexpr auto kStates = static_cast<int64_t>(kernels::kBankStates);
constexpr auto kThresholds = static_cast<int64_t>(kernels::kBankThresholds);

constexpr const char* kTheta = "bank.theta";
constexpr const char* kGamma = "bank.gamma_log";
constexpr const char* kDrive = "bank.drive";
constexpr const char* kLevels = "bank.thresholds";
constexpr const char* kInputs = "bank.inputs";

std::span<const int64_t> inputs_of(const Weights& weights) {
  for (const auto& b : weights.layout().buffers) {
    if (b.name == kInputs) return std::span(weights.integers()).subspan(b.offset, b.count);
  }
  return {};
}

void check(const ModelOptions& m, const DataShape& shape) {
  const FeatureOptions& f = m.features;
  if (shape.input == InputKind::tokens || shape.towers != 1 || shape.per_token) {
    throw std::invalid_argument(fmt::format(
        "model.body: \"features\" is for one answer per series of numbers, and this task has {}; "
        "use \"blocks\" and rotrnn train",
        shape.input == InputKind::tokens ? "texts or token numbers"
        : shape.towers != 1              ? "pairs"
                                         : "an output for every step"));
  }
  if (f.states < kStates || f.states % kStates != 0) {
    throw std::invalid_argument(
        fmt::format("model.features.states: {}; it must be a multiple of {}", f.states, kStates));
  }
  if (f.taps < 1 || f.taps > static_cast<int64_t>(kernels::kBankTaps)) {
    throw std::invalid_argument(fmt::format("model.features.taps: {}; rotrnn fit chooses 1 to {}",
                                            f.taps, kernels::kBankTaps));
  }
}

}  // namespace

void add_feature_tensors(const ModelOptions& m, const DataShape& shape, TensorSpecs& out) {
  check(m, shape);
  const int64_t S = m.features.states, groups = S / kStates;
  const auto add = [&](const char* name, std::vector<int64_t> size, ParameterGroup group) {
    out.parameters.push_back({name, std::move(size), group});
  };
  add(kTheta, {S}, ParameterGroup::recurrent);
  add(kGamma, {S}, ParameterGroup::recurrent);
  add(kDrive, {groups, m.features.taps, 2, kStates}, ParameterGroup::recurrent);
  add(kLevels, {kThresholds, S}, ParameterGroup::no_decay);
  add("head.weight", {shape.outputs, (kThresholds + 1) * S}, ParameterGroup::decay);
  add("head.bias", {shape.outputs}, ParameterGroup::no_decay);
  out.buffers.push_back({kInputs, {groups, m.features.taps}, true});
}

kernels::FeatureBank feature_bank(const ModelOptions& m, int64_t channels, const Weights& weights) {
  kernels::FeatureBank bank;
  bank.channels = static_cast<size_t>(channels);
  bank.differences = m.features.differences;
  bank.taps = static_cast<size_t>(m.features.taps);
  const auto copy = [&](const char* name, std::vector<float>& to) {
    const std::span<const float> from = weights.find(name);
    to.assign(from.begin(), from.end());
  };
  copy(kTheta, bank.theta);
  copy(kGamma, bank.gamma_log);
  copy(kDrive, bank.drive);
  copy(kLevels, bank.thresholds);
  const int64_t width = bank.differences ? 2 * channels : channels;
  for (const int64_t input : inputs_of(weights)) {
    if (input < 0 || input >= width) {
      throw std::runtime_error(fmt::format(
          "bank.inputs: {} where there are {} inputs; the weights are damaged", input, width));
    }
    bank.inputs.push_back(static_cast<int32_t>(input));
  }
  bank.prepare();
  return bank;
}

void set_features(const kernels::FeatureBank& bank, std::span<const float> head_weight,
                  std::span<const float> head_bias, Weights& weights) {
  const auto copy = [&](const char* name, std::span<const float> from) {
    const std::span<float> to = weights.find(name);
    if (to.size() != from.size()) {
      throw std::invalid_argument(
          fmt::format("{}: {} numbers for {}", name, from.size(), to.size()));
    }
    std::copy(from.begin(), from.end(), to.begin());
  };
  copy(kTheta, bank.theta);
  copy(kGamma, bank.gamma_log);
  copy(kDrive, bank.drive);
  copy(kLevels, bank.thresholds);
  copy("head.weight", head_weight);
  copy("head.bias", head_bias);
  for (const auto& b : weights.layout().buffers) {
    if (b.name != kInputs) continue;
    std::copy(bank.inputs.begin(), bank.inputs.end(),
              weights.integers().begin() + static_cast<ptrdiff_t>(b.offset));
  }
}

}  // namespace rotrnn
