#include "rotrnn/training/adamw.h"

#include <cmath>

#include "rotrnn/kernels/adamw.h"

namespace rotrnn {
namespace {

using torch::Tensor;

// The same step in ATen operations, for other types and devices than the kernel's.
void reference_step(const kernels::AdamW& s, int64_t step, Tensor w, const Tensor& g, Tensor m,
                    Tensor v) {
  const double correction1 = 1 - std::pow(s.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(s.beta2, static_cast<double>(step));
  w.mul_(1 - s.lr * s.decay);
  m.lerp_(g, 1 - s.beta1);
  v.mul_(s.beta2).addcmul_(g, g, 1 - s.beta2);
  w.addcdiv_(m, (v.sqrt() / std::sqrt(correction2)).add_(s.eps), -s.lr / correction1);
}

}  // namespace

AdamW::AdamW(torch::nn::Module& model) {
  torch::NoGradGuard no_grad;
  int64_t total = 0;
  for (const auto& p : model.parameters()) total += p.numel();
  const auto options = model.parameters().front().options().requires_grad(false);
  for (Tensor* t : {&values_, &gradients_, &first_, &second_}) *t = torch::zeros({total}, options);

  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& entry : model.named_parameters()) parameters.emplace_back(entry.pair());
  std::vector<Slot> slots(parameters.size());
  int64_t at = 0;
  for (const auto group : {ParameterGroup::recurrent, ParameterGroup::recurrent_decay,
                           ParameterGroup::no_decay, ParameterGroup::decay}) {
    ranges_.push_back({group, at, 0});
    for (size_t i = 0; i < parameters.size(); ++i) {
      auto& [name, parameter] = parameters[i];
      if (group_of(model, name) != group) continue;
      auto view = [&](const Tensor& flat) {
        return flat.narrow(0, at, parameter.numel()).view(parameter.sizes());
      };
      view(values_).copy_(parameter);
      parameter.set_data(view(values_));
      parameter.mutable_grad() = view(gradients_);
      slots[i] = {name, group, parameter, view(first_), view(second_)};
      at += parameter.numel();
    }
    ranges_.back().size = at - ranges_.back().begin;
  }
  slots_ = std::move(slots);
}

void AdamW::step(int64_t step, double global_lr, double recurrent_lr, double weight_decay) {
  torch::NoGradGuard no_grad;
  const bool fast = values_.device().is_cpu() && values_.scalar_type() == torch::kFloat32;
  for (const Range& range : ranges_) {
    if (range.size == 0) continue;
    kernels::AdamW s;
    const bool recurrent =
        range.group == ParameterGroup::recurrent || range.group == ParameterGroup::recurrent_decay;
    const bool decays =
        range.group == ParameterGroup::decay || range.group == ParameterGroup::recurrent_decay;
    s.lr = recurrent ? recurrent_lr : global_lr;
    s.beta1 = kBeta1;
    s.beta2 = kBeta2;
    s.eps = kEpsilon;
    s.decay = decays ? weight_decay : 0;
    auto part = [&](const Tensor& flat) { return flat.narrow(0, range.begin, range.size); };
    if (fast) {
      auto pointer = [&](const Tensor& flat) { return flat.data_ptr<float>() + range.begin; };
      kernels::adamw(s, step, pointer(values_), pointer(gradients_), pointer(first_),
                     pointer(second_), static_cast<size_t>(range.size), torch::get_num_threads());
    } else {
      reference_step(s, step, part(values_), part(gradients_), part(first_), part(second_));
    }
  }
}

void AdamW::zero_grad() {
  gradients_.zero_();
}

double AdamW::gradient_norm() const {
  return gradients_.norm().item<double>();
}

bool AdamW::finite() const {
  for (const Tensor* t : {&values_, &first_, &second_}) {
    if (!torch::isfinite(*t).all().item<bool>()) return false;
  }
  return true;
}

void AdamW::scale_gradients(double factor) {
  gradients_.mul_(factor);
}

}  // namespace rotrnn
