#include "rotrnn/network/heads.h"

#include <algorithm>

#include "rotrnn/kernels/block/activations.h"
#include "rotrnn/kernels/block/pooling.h"
#include "rotrnn/kernels/gemm/dense.h"

namespace rotrnn {
namespace {

// [a, b, a - b, a ⊙ b] of every pair of rows.
void join(const float* pooled, size_t pairs, size_t D, float* out) {
  for (size_t i = 0; i < pairs; ++i) {
    const float *a = pooled + 2 * i * D, *b = a + D;
    float* row = out + 4 * i * D;
    for (size_t d = 0; d < D; ++d) {
      row[d] = a[d];
      row[D + d] = b[d];
      row[2 * D + d] = a[d] - b[d];
      row[3 * D + d] = a[d] * b[d];
    }
  }
}

void join_backward(const float* pooled, size_t pairs, size_t D, const float* dout, float* dpooled) {
  for (size_t i = 0; i < pairs; ++i) {
    const float *a = pooled + 2 * i * D, *b = a + D, *row = dout + 4 * i * D;
    float *da = dpooled + 2 * i * D, *db = da + D;
    for (size_t d = 0; d < D; ++d) {
      const float difference = row[2 * D + d], product = row[3 * D + d];
      da[d] = row[d] + difference + product * b[d];
      db[d] = row[D + d] - difference + product * a[d];
    }
  }
}

}  // namespace

float* Head::forward(const ModelOptions& options, const DataShape& shape, const PackedInput& batch,
                     const NetworkParts<float>& parts, const float* x, int threads,
                     kernels::Arena& arena) {
  D_ = static_cast<size_t>(options.width);
  outputs_ = static_cast<size_t>(shape.outputs);
  rows_ = output_rows(options, shape, batch);
  pooling_ = options.pooling;
  pairs_ = parts.hidden.weight != nullptr;
  offsets_ = batch.offsets;
  const kernels::PackedSequences sequences{offsets_.data(), batch.sequences()};
  pooled_ = x;
  if (pooling_ != Pooling::none) {
    auto* pooled = arena.take<float>(sequences.count * D_);
    pooling_ == Pooling::mean ? kernels::pool_mean(sequences, x, D_, pooled, threads)
                              : kernels::pool_last(sequences, x, D_, pooled);
    pooled_ = pooled;
  }
  const float* last = pooled_;
  if (pairs_) {
    joined_ = arena.take<float>(rows_ * 4 * D_);
    sum_ = arena.take<float>(rows_ * D_);
    hidden_ = arena.take<float>(rows_ * D_);
    join(pooled_, rows_, D_, joined_);
    kernels::dense_forward({4 * D_, D_, parts.hidden.weight, parts.hidden.bias}, joined_, rows_,
                           sum_, threads);
    kernels::gelu_forward(sum_, hidden_, rows_ * D_);
    last = hidden_;
  }
  auto* y = arena.take<float>(rows_ * outputs_);
  kernels::dense_forward({D_, outputs_, parts.head.weight, parts.head.bias}, last, rows_, y,
                         threads);
  return y;
}

void Head::pool_backward(const float* dpooled, float* dx, int threads) const {
  const kernels::PackedSequences sequences{offsets_.data(), offsets_.size() - 1};
  if (pooling_ == Pooling::mean) {
    kernels::pool_mean_backward(sequences, dpooled, D_, dx, threads);
  } else {
    kernels::pool_last_backward(sequences, dpooled, D_, dx, threads);
  }
}

void Head::backward(const NetworkParts<float>& parts, const NetworkParts<float>& gradients,
                    const float* dy, float* dx, int threads, kernels::Arena& arena) {
  if (dy == nullptr) {
    auto* zero = arena.take<float>(rows_ * outputs_);
    std::fill_n(zero, rows_ * outputs_, 0.0f);
    dy = zero;
  }
  const kernels::Dense head{D_, outputs_, parts.head.weight, parts.head.bias};
  const auto& dhead = gradients.head;
  if (pooling_ == Pooling::none) {
    return kernels::dense_backward(head, pooled_, rows_, dy, dhead.weight, dhead.bias, dx, threads);
  }
  const size_t sequences = offsets_.size() - 1;
  auto* dpooled = arena.take<float>(sequences * D_);
  if (!pairs_) {
    kernels::dense_backward(head, pooled_, rows_, dy, dhead.weight, dhead.bias, dpooled, threads);
  } else {
    auto *dhidden = arena.take<float>(rows_ * D_), *djoined = arena.take<float>(rows_ * 4 * D_);
    kernels::dense_backward(head, hidden_, rows_, dy, dhead.weight, dhead.bias, dhidden, threads);
    kernels::gelu_backward(sum_, dhidden, dhidden, rows_ * D_);
    kernels::dense_backward({4 * D_, D_, parts.hidden.weight, parts.hidden.bias}, joined_, rows_,
                            dhidden, gradients.hidden.weight, gradients.hidden.bias, djoined,
                            threads);
    join_backward(pooled_, rows_, D_, djoined, dpooled);
  }
  pool_backward(dpooled, dx, threads);
}

}  // namespace rotrnn
