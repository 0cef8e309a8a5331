#pragma once

#include "rotrnn/layers/layer.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/weights.h"
#include "rotrnn/spec/data_shape.h"

namespace rotrnn {

/// Names, shapes and groups of all tensors of a network:
///
///     (frontend.*)
///     encoder.weight (, encoder.bias)
///     blocks.K.norm.*, blocks.K.layer.*, (blocks.K.value.*, blocks.K.gate.*)
///     (hidden.*: of pairs) head.*
///
/// std::invalid_argument for invalid sizes.
TensorSpecs network_tensors(const ModelOptions& options, const DataShape& shape);

/// Draws the initial values: a pure function of the seed. `options` are resolved. Each parameter
/// outside the layers has a stream of its own name, so that adding a module does not change the
/// others.
void draw_network(const ModelOptions& options, uint64_t seed, Weights& weights);

/// The tensors of one layer, by their names in it; `prefix` is what stands before these in the
/// weights, such as "blocks.0.layer.".
LayerValues layer_values(const LayerOptions& options, const std::string& prefix, Weights& weights);
LayerValues layer_values(const ModelOptions& options, size_t block, Weights& weights);

/// The layers of a network: their tensors, and gradients of their parameters in double.
struct NetworkLayers {
  NetworkLayers(const ModelOptions& options, Weights& weights);
  NetworkLayers(const NetworkLayers&) = delete;

  /// Rounds the gradients into an array of the layout of the weights.
  void write_gradients(FlatArray& out) const;
  /// Adds them to such an array in double.
  void add_gradients(std::vector<double>& out) const;

  const float* weights;  // of whose memory these are views
  std::vector<LayerValues> values;
  std::vector<Views<double>> gradients;

 private:
  std::vector<double> sums_;  // in the layout of the weights, of which the layers' part is used
  std::vector<WeightLayout::Parameter> parameters_;
};

}  // namespace rotrnn
