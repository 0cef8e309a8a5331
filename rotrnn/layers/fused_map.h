#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace rotrnn {

/// The results of f, which maps parameters (in double), as contiguous float32
/// and as one node of the graph: what autograd records of f is kept inside and
/// walked by the node itself, which is what lets the time of the backward pass
/// be taken. `seconds`, when given, is added that of both passes.
std::vector<torch::Tensor> fused_map(const std::vector<torch::Tensor>& parameters,
                                     const std::function<std::vector<torch::Tensor>()>& f,
                                     double* seconds);

}  // namespace rotrnn
