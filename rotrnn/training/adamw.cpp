#include "rotrnn/training/adamw.h"

#include <cmath>

namespace rotrnn {

AdamW::AdamW(const torch::nn::Module& model) {
  for (const auto& entry : model.named_parameters()) {
    const auto zeros = [&] { return torch::zeros_like(entry.value()).detach(); };
    slots_.push_back({entry.key(), group_of(entry.key()), entry.value(), zeros(), zeros()});
  }
}

void AdamW::step(int64_t step, double global_lr, double recurrent_lr, double weight_decay) {
  torch::NoGradGuard no_grad;
  const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(step));
  for (Slot& slot : slots_) {
    const torch::Tensor& gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    const double lr = slot.group == ParameterGroup::recurrent ? recurrent_lr : global_lr;
    if (slot.group == ParameterGroup::decay) slot.parameter.mul_(1 - lr * weight_decay);
    slot.first.lerp_(gradient, 1 - kBeta1);
    slot.second.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    const auto denominator = (slot.second.sqrt() / std::sqrt(correction2)).add_(kEpsilon);
    slot.parameter.addcdiv_(slot.first, denominator, -lr / correction1);
  }
}

void AdamW::zero_grad() {
  for (Slot& slot : slots_) {
    if (slot.parameter.grad().defined()) slot.parameter.mutable_grad().zero_();
  }
}

double AdamW::gradient_norm() const {
  double sum = 0;
  for (const Slot& slot : slots_) {
    if (!slot.parameter.grad().defined()) continue;
    const double norm = slot.parameter.grad().norm().item<double>();
    sum += norm * norm;
  }
  return std::sqrt(sum);
}

void AdamW::scale_gradients(double factor) {
  torch::NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    if (slot.parameter.grad().defined()) slot.parameter.mutable_grad().mul_(factor);
  }
}

}  // namespace rotrnn
