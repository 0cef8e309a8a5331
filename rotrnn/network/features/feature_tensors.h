#pragma once

#include <span>

#include "rotrnn/kernels/features/feature_bank.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/weights.h"
#include "rotrnn/spec/data_shape.h"

namespace rotrnn {

/// The tensors of a network whose body is a bank of rotations:
///
///     bank.theta, bank.gamma_log [S]     bank.drive [groups, taps, 2, 16]     bank.thresholds [5,
///     S] bank.inputs [groups, taps] (integers)         head.weight [outputs, 6·S], head.bias
///     [outputs]
///
/// std::invalid_argument for what such a network cannot be: pairs, texts, an output for every step.
void add_feature_tensors(const ModelOptions& options, const DataShape& shape, TensorSpecs& out);

/// The bank of such a network, for tokens of so many channels. std::runtime_error for tensors that
/// are out of range.
kernels::FeatureBank feature_bank(const ModelOptions& options, int64_t channels,
                                  const Weights& weights);

/// Sets all of them.
void set_features(const kernels::FeatureBank& bank, std::span<const float> head_weight,
                  std::span<const float> head_bias, Weights& weights);

}  // namespace rotrnn
