#include "rotrnn/layers/layer.h"

#include <algorithm>
#include <stdexcept>

#include "rotrnn/layers/fused_map.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {
namespace {

using torch::Tensor;

std::vector<Tensor*> tensors_of(System& s) {
  std::vector<Tensor*> all{&s.lambda_re, &s.lambda_im, &s.W, &s.V,        &s.V_reverse,
                           &s.D,         &s.b,         &s.e, &s.start_re, &s.start_im};
  std::erase_if(all, [](const Tensor* t) { return !t->defined(); });
  return all;
}

System rounded_system(const DiagonalLayer& layer, double* seconds) {
  System system;
  const std::vector<Tensor> rounded = fused_map(
      layer.parameters(),
      [&] {
        system = layer.system();
        std::vector<Tensor> exact;
        for (const Tensor* t : tensors_of(system)) exact.push_back(*t);
        return exact;
      },
      seconds);
  const auto places = tensors_of(system);
  for (size_t i = 0; i < places.size(); ++i) *places[i] = rounded[i];
  return system;
}

}  // namespace

std::vector<System> DiagonalLayer::fused_systems(const std::vector<const DiagonalLayer*>& layers,
                                                 int, double* seconds) const {
  std::vector<System> systems;
  for (const DiagonalLayer* layer : layers) systems.push_back(rounded_system(*layer, seconds));
  return systems;
}

FusedChannels Layer::fused_channels(const Layout&, double*) const {
  throw std::invalid_argument(name() + " does not run on the fused kernels");
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
