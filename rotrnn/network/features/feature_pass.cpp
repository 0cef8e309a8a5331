#include "rotrnn/network/features/feature_pass.h"

#include <algorithm>

#include "rotrnn/kernels/gemm/dense.h"
#include "rotrnn/network/features/feature_tensors.h"

namespace rotrnn {
namespace {

// Sequences whose features are in memory at a time: 24 MB of 1,024 states.
constexpr size_t kSequences = 1024;

}  // namespace

std::span<const float> FeaturePass::forward(const Input& in) {
  const kernels::FeatureBank bank = feature_bank(in.options, in.channels, in.weights);
  const size_t F = bank.features(), outputs = static_cast<size_t>(in.outputs);
  const size_t n = in.batch.sequences();
  y_.resize(n * outputs);
  features_.resize(std::min(n, kSequences) * F);
  const kernels::Dense head{F, outputs, in.weights.find("head.weight").data(),
                            in.weights.find("head.bias").data()};
  std::vector<kernels::BankSequence> sequences;
  for (size_t begin = 0; begin < n; begin += kSequences) {
    const size_t end = std::min(n, begin + kSequences);
    sequences.clear();
    for (size_t i = begin; i < end; ++i) {
      const auto first = static_cast<size_t>(in.batch.offsets[i]);
      const auto last = static_cast<size_t>(in.batch.offsets[i + 1]);
      sequences.push_back(
          {in.batch.values.data() + first * static_cast<size_t>(in.channels), last - first});
    }
    kernels::bank_features(bank.view(), sequences, features_.data(), in.threads);
    kernels::dense_forward(head, features_.data(), end - begin, y_.data() + begin * outputs,
                           in.threads);
  }
  return y_;
}

}  // namespace rotrnn
