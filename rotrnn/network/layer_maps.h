#pragma once

#include <vector>

#include "rotrnn/layers/layer.h"

namespace rotrnn {

/// Layers as the sequence kernels take them, and the way back for gradients.
class LayerMaps {
 public:
  /// Maps the layers, after they have been prepared for sequences of that length. With `reuse` only
  /// if a layer had to be changed for it: the parameters are those of the last call.
  void forward(const LayerOptions& options, const std::vector<LayerValues>& layers, int64_t longest,
               int threads, bool reuse);

  /// In double, and rounded to float32.
  const Description<double>& exact(size_t layer) const { return exact_[layer]; }
  const Description<float>& rounded(size_t layer) const { return rounded_[layer]; }

  /// Where the kernels put the gradient of a description; sized by them.
  Description<float>& gradient(size_t layer) { return gradients_[layer]; }

  /// Computes the gradients of the layers' parameters, overwritten, from those of the descriptions:
  /// gradient(), or `exact` when it is not null.
  void backward(const LayerOptions& options, const std::vector<LayerValues>& layers, int threads,
                const std::vector<Views<double>>& out,
                const std::vector<Description<double>>* exact = nullptr);

 private:
  std::vector<Description<double>> exact_, exact_gradients_;
  std::vector<Description<float>> rounded_, gradients_;
  MapTrace trace_;
  bool mapped_ = false;
};

}  // namespace rotrnn
