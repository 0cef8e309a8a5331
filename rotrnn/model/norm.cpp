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

torch::Tensor NormImpl::forward(const torch::Tensor& x, bool update) {
  if (kind_ == NormKind::layer) return torch::layer_norm(x, {x.size(-1)}, weight, bias, kEpsilon);
  if (!is_training()) {
    return torch::batch_norm(x, weight, bias, running_mean, running_var, false, 0, kEpsilon, false);
  }
  if (update) {
    // Our own update: LibTorch's would put the unbiased variance there.
    torch::NoGradGuard no_grad;
    const auto [var, mean] = torch::var_mean(x, torch::IntArrayRef{0}, /*unbiased=*/false);
    update_running(mean, var);
  }
  return torch::batch_norm(x, weight, bias, {}, {}, true, 0, kEpsilon, false);
}

std::pair<torch::Tensor, torch::Tensor> NormImpl::affine() const {
  if (kind_ == NormKind::layer || is_training()) return {weight, bias};
  const torch::Tensor a = weight * torch::rsqrt(running_var + kEpsilon);
  return {a, bias - running_mean * a};
}

void NormImpl::update_running(const torch::Tensor& mean, const torch::Tensor& var) {
  torch::NoGradGuard no_grad;
  running_mean.lerp_(mean.to(running_mean.scalar_type()), 1 - momentum_);
  running_var.lerp_(var.to(running_var.scalar_type()), 1 - momentum_);
}

}  // namespace rotrnn
