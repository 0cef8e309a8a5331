#include "rotrnn/layers/layer.h"

#include <algorithm>
#include <stdexcept>

#include "rotrnn/kernels/stopwatch.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<Tensor*> tensors_of(System& s) {
  std::vector<Tensor*> all{&s.lambda_re, &s.lambda_im, &s.W, &s.V,        &s.V_reverse,
                           &s.D,         &s.b,         &s.e, &s.start_re, &s.start_im};
  std::erase_if(all, [](const Tensor* t) { return !t->defined(); });
  return all;
}

// A map as one node of the graph. What autograd records of the map is kept inside and walked by the
// node itself, which is what lets the time of the backward pass be taken.
struct Map : torch::autograd::Function<Map> {
  static variable_list forward(AutogradContext* context, at::TensorList parameters, System* system,
                               const DiagonalLayer* layer, double* seconds) {
    const kernels::Stopwatch watch(seconds);
    const torch::AutoGradMode record(true);
    *system = layer->system();
    variable_list exact, rounded;
    for (const Tensor* t : tensors_of(*system)) {
      exact.push_back(*t);
      rounded.push_back(t->detach().to(torch::kFloat32));
    }
    context->saved_data["parameters"] = parameters.vec();
    context->saved_data["system"] = exact;
    context->saved_data["seconds"] = reinterpret_cast<int64_t>(seconds);
    context->set_materialize_grads(false);
    return rounded;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const kernels::Stopwatch watch(
        reinterpret_cast<double*>(context->saved_data["seconds"].toInt()));
    const variable_list exact = context->saved_data["system"].toTensorVector();
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
    out.resize(out.size() + 3);  // system, layer and seconds have no gradient
    return out;
  }
};

System rounded_system(const DiagonalLayer& layer, double* seconds) {
  const std::vector<Tensor> parameters = layer.parameters();
  const bool records =
      torch::GradMode::is_enabled() &&
      std::any_of(parameters.begin(), parameters.end(), [](auto& p) { return p.requires_grad(); });
  System system;
  if (records) {
    const at::TensorList list(parameters);
    const variable_list rounded = Map::apply(list, &system, &layer, seconds);
    const auto places = tensors_of(system);
    for (size_t i = 0; i < places.size(); ++i) *places[i] = rounded[i];
  } else {
    const kernels::Stopwatch watch(seconds);
    system = layer.system();
    for (Tensor* t : tensors_of(system)) *t = t->to(torch::kFloat32);
  }
  return system;
}

}  // namespace

std::vector<System> DiagonalLayer::fused_systems(const std::vector<const DiagonalLayer*>& layers,
                                                 int, double* seconds) const {
  std::vector<System> systems;
  for (const DiagonalLayer* layer : layers) systems.push_back(rounded_system(*layer, seconds));
  return systems;
}

Tensor Layer::state_norms(const Tensor& z) const {
  return z.norm(2, -1, /*keepdim=*/true);
}

SystemOutput DiagonalLayer::forward(const Packed& u, const States& initial, bool) const {
  return run_system(system(), u, initial);
}

DiagonalLayer& diagonal(Layer& layer) {
  auto* mixing = dynamic_cast<DiagonalLayer*>(&layer);
  if (mixing == nullptr) {
    throw std::invalid_argument(layer.name() + " does not mix channels: it has no System");
  }
  return *mixing;
}

Tensor Layer::forward_padded(const Tensor& u, const std::vector<int64_t>& lengths) const {
  const Packed packed = pack(u, lengths);
  return pad(packed.with(forward(packed).y), u.size(1));
}

std::shared_ptr<Layer> make_layer(const LayerOptions& options, uint64_t seed, uint64_t stream) {
  check_layers(options);
  const auto found =
      std::find_if(std::begin(kLayers), std::end(kLayers),
                   [&](const LayerEntry& entry) { return options.layer == entry.name; });
  return found->make(options, seed, stream);
}

}  // namespace rotrnn
