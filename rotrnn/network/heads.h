#pragma once

#include "rotrnn/network/network.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/parts.h"

namespace rotrnn {

/// Pooling and head: from the last block's output to the outputs of the network.
///
///     classes, values   y = W pooled + b
///     per token         the same of every row
///     pairs             y = W gelu(W_h [a, b, a - b, a ⊙ b] + b_h) + b, a and b pooled
class Head {
 public:
  /// x [rows, D]; memory for what backward needs is taken from the arena. Gives y.
  float* forward(const ModelOptions& options, const DataShape& shape, const PackedInput& batch,
                 const NetworkParts<float>& parts, const float* x, int threads,
                 kernels::Arena& arena);

  /// From dy to dx [rows, D], with the gradients of the head's parameters. `dy` null: 0.
  void backward(const NetworkParts<float>& parts, const NetworkParts<float>& gradients,
                const float* dy, float* dx, int threads, kernels::Arena& arena);

 private:
  void pool_backward(const float* dpooled, float* dx, int threads) const;

  size_t D_ = 0, outputs_ = 0, rows_ = 0;  // rows of y
  Pooling pooling_ = Pooling::mean;
  bool pairs_ = false;
  std::span<const int64_t> offsets_;
  const float* pooled_ = nullptr;                                 // [sequences, D], or x itself
  float *joined_ = nullptr, *sum_ = nullptr, *hidden_ = nullptr;  // of pairs
};

}  // namespace rotrnn
