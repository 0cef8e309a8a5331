#include "rotrnn/training/optimiser.h"

#include <algorithm>
#include <cmath>

#include "rotrnn/kernels/optimiser/adamw.h"

namespace rotrnn {
namespace {

bool is_recurrent(ParameterGroup group) {
  return group == ParameterGroup::recurrent || group == ParameterGroup::recurrent_decay;
}

bool decays(ParameterGroup group) {
  return group == ParameterGroup::decay || group == ParameterGroup::recurrent_decay;
}

}  // namespace

void Optimiser::step(int64_t step, const LearningRates& rates, const FlatArray& gradients,
                     Weights& weights, int threads) {
  for (const WeightLayout::Range& range : weights.layout().ranges) {
    kernels::AdamW s;
    s.lr = is_recurrent(range.group) ? rates.recurrent : rates.global;
    s.beta1 = kBeta1;
    s.beta2 = kBeta2;
    s.eps = kEpsilon;
    s.decay = decays(range.group) ? rates.weight_decay : 0;
    kernels::adamw(s, step, weights.parameters().data() + range.offset,
                   gradients.data() + range.offset, first_.data() + range.offset,
                   second_.data() + range.offset, range.count, threads);
  }
}

double norm_of(const FlatArray& array) {
  constexpr size_t kLanes = 8;  // sums side by side, which the compiler turns into vectors
  double sums[kLanes] = {};
  const float* x = array.data();
  const size_t whole = array.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (size_t i = whole; i < array.size(); ++i) {
    total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return std::sqrt(total);
}

void scale(FlatArray& array, double factor) {
  const auto f = static_cast<float>(factor);
  for (float& x : array.all()) x *= f;
}

void add(FlatArray& sum, const FlatArray& part) {
  std::transform(sum.all().begin(), sum.all().end(), part.all().begin(), sum.all().begin(),
                 [](float a, float b) { return a + b; });
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace rotrnn
