#include "rotrnn/model/norm.h"

namespace rotrnn {

NormImpl::NormImpl(NormKind kind, int64_t width, double momentum)
    : kind_(kind), momentum_(momentum) {
  weight = register_parameter("weight", torch::ones({width}));
  bias = register_parameter("bias", torch::zeros({width}));
  if (kind_ == NormKind::batch) {
    running_mean = register_buffer("running_mean", torch::zeros({width}));
    running_var = register_buffer("running_var", torch::ones({width}));
  }
}

torch::Tensor NormImpl::forward(const torch::Tensor& x) {
  if (kind_ == NormKind::layer) return torch::layer_norm(x, {x.size(-1)}, weight, bias, kEpsilon);
  if (!is_training()) {
    return torch::batch_norm(x, weight, bias, running_mean, running_var, false, 0, kEpsilon, false);
  }
  {
    // Our own update: LibTorch's would put the unbiased variance there.
    torch::NoGradGuard no_grad;
    const auto [var, mean] = torch::var_mean(x, torch::IntArrayRef{0}, /*unbiased=*/false);
    running_mean.lerp_(mean, 1 - momentum_);
    running_var.lerp_(var, 1 - momentum_);
  }
  return torch::batch_norm(x, weight, bias, {}, {}, true, 0, kEpsilon, false);
}

}  // namespace rotrnn
