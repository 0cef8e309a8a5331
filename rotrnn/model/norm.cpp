#include "rotrnn/model/norm.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Of a batch that several processes share, in double.
struct Statistics : torch::CustomClassHolder {
  explicit Statistics(kernels::Reduce r) : reduce(std::move(r)) {}

  Tensor sum(const Tensor& local) const {
    Tensor total = local.to(torch::kCPU, torch::kFloat64).contiguous();
    if (total.is_same(local)) total = local.clone();
    reduce(total.data_ptr<double>(), static_cast<size_t>(total.numel()));
    return total.to(local.device());
  }

  kernels::Reduce reduce;
  Tensor mean, var, count;
};

// Batch norm by the statistics of all processes; dx = a(dy - Σdy/n - x̂·Σ(dy⊙x̂)/n) with the sums of
// all. The gradients of weight and bias are those of this process, as all gradients are.
struct SharedNorm : torch::autograd::Function<SharedNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias, const c10::intrusive_ptr<Statistics>& s) {
    const auto [local_var, local_mean] = torch::var_mean(x, torch::IntArrayRef{0}, false);
    const auto rows = static_cast<double>(x.size(0));
    const Tensor mean = local_mean.to(torch::kFloat64), var = local_var.to(torch::kFloat64);
    const Tensor total = s->sum(
        torch::cat({mean * rows, (var + mean.square()) * rows, torch::full_like(mean, rows)}));
    const auto parts = total.chunk(3);
    s->count = parts[2];
    s->mean = parts[0] / s->count;
    s->var = (parts[1] / s->count - s->mean.square()).clamp_min(0);
    const Tensor rstd = torch::rsqrt(s->var + NormImpl::kEpsilon);
    const Tensor hat = (x - s->mean.to(x.dtype())) * rstd.to(x.dtype());
    context->save_for_backward({hat, weight, rstd.to(x.dtype())});
    context->saved_data["statistics"] = c10::IValue::make_capsule(s);
    return hat * weight + bias;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["statistics"].toCapsule();
    const auto* s = static_cast<const Statistics*>(capsule.get());
    const variable_list saved = context->get_saved_variables();
    const Tensor &dy = grads[0], &hat = saved[0], &weight = saved[1], &rstd = saved[2];
    const Tensor dbias = dy.sum(0), dweight = (dy * hat).sum(0);
    const auto means =
        (s->sum(torch::cat({dbias, dweight}).to(torch::kFloat64)) / s->count.repeat({2}))
            .to(dy.dtype())
            .chunk(2);
    const Tensor dx = weight * rstd * (dy - means[0] - hat * means[1]);
    return {dx, dweight, dbias, Tensor()};
  }
};

}  // namespace

NormImpl::NormImpl(NormKind kind, int64_t width, double momentum)
    : kind_(kind), momentum_(momentum) {
  weight = register_parameter("weight", torch::ones({width}));
  bias = register_parameter("bias", torch::zeros({width}));
  if (kind_ == NormKind::batch) {
    running_mean = register_buffer("running_mean", torch::zeros({width}));
    running_var = register_buffer("running_var", torch::ones({width}));
  }
}

torch::Tensor NormImpl::forward(const torch::Tensor& x, bool update,
                                const kernels::Reduce& reduce) {
  if (kind_ == NormKind::layer) return torch::layer_norm(x, {x.size(-1)}, weight, bias, kEpsilon);
  if (!is_training()) {
    return torch::batch_norm(x, weight, bias, running_mean, running_var, false, 0, kEpsilon, false);
  }
  if (reduce) {
    const auto statistics = c10::make_intrusive<Statistics>(reduce);
    const torch::Tensor y = SharedNorm::apply(x, weight, bias, statistics);
    if (update) update_running(statistics->mean, statistics->var);
    return y;
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
