#include "rotrnn/layers/fused_map.h"

#include <algorithm>

#include "rotrnn/kernels/stopwatch.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Mapping = std::function<variable_list()>;

variable_list rounded(const variable_list& exact) {
  variable_list out;
  for (const Tensor& t : exact) out.push_back(t.detach().to(torch::kFloat32).contiguous());
  return out;
}

struct Map : torch::autograd::Function<Map> {
  static variable_list forward(AutogradContext* context, at::TensorList parameters,
                               const Mapping* f, double* seconds) {
    const kernels::Stopwatch watch(seconds);
    variable_list exact;
    {
      const torch::AutoGradMode record(true);
      exact = (*f)();
    }
    context->saved_data["parameters"] = parameters.vec();
    context->saved_data["results"] = exact;
    context->saved_data["seconds"] = reinterpret_cast<int64_t>(seconds);
    context->set_materialize_grads(false);
    return rounded(exact);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const kernels::Stopwatch watch(
        reinterpret_cast<double*>(context->saved_data["seconds"].toInt()));
    const variable_list exact = context->saved_data["results"].toTensorVector();
    variable_list used, given;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || !exact[i].requires_grad()) continue;
      used.push_back(exact[i]);
      given.push_back(grads[i].to(exact[i].scalar_type()));
    }
    const variable_list parameters = context->saved_data["parameters"].toTensorVector();
    variable_list out(parameters.size());
    if (!used.empty()) {
      out = torch::autograd::grad(used, parameters, given, /*retain_graph=*/c10::nullopt,
                                  /*create_graph=*/false, /*allow_unused=*/true);
    }
    out.resize(out.size() + 2);  // f and seconds have no gradient
    return out;
  }
};

}  // namespace

variable_list fused_map(const std::vector<Tensor>& parameters, const Mapping& f, double* seconds) {
  const bool records =
      torch::GradMode::is_enabled() &&
      std::any_of(parameters.begin(), parameters.end(), [](auto& p) { return p.requires_grad(); });
  if (records) return Map::apply(at::TensorList(parameters), &f, seconds);
  const kernels::Stopwatch watch(seconds);
  return rounded(f());
}

}  // namespace rotrnn
