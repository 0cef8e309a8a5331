#pragma once

#include "rotrnn/network/weights.h"

namespace rotrnn {

/// How fast a step moves the parameters of each group.
struct LearningRates {
  double global = 0, recurrent = 0, weight_decay = 0;
};

/// AdamW (Loshchilov and Hutter 2019) with the learning-rate and decay groups of the network: a
/// step is one pass over four flat arrays.
class Optimiser {
 public:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

  explicit Optimiser(const WeightLayout& layout) : first_(layout), second_(layout) {}

  /// One step; `step` counts from 1 and corrects the bias of the moments.
  void step(int64_t step, const LearningRates& rates, const FlatArray& gradients, Weights& weights,
            int threads);

  FlatArray& first() { return first_; }
  FlatArray& second() { return second_; }
  const FlatArray& first() const { return first_; }
  const FlatArray& second() const { return second_; }

 private:
  FlatArray first_, second_;
};

/// Euclidean norm of a whole array, in double.
double norm_of(const FlatArray& array);

void scale(FlatArray& array, double factor);

/// Adds `part` to `sum`.
void add(FlatArray& sum, const FlatArray& part);

bool all_finite(std::span<const float> values);

}  // namespace rotrnn
