#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "rotrnn/layers/layer_options.h"
#include "rotrnn/layers/system.h"

namespace rotrnn {

/// Which learning rate and decay a parameter gets.
enum class ParameterGroup {
  recurrent,        // recurrent rate, no decay
  recurrent_decay,  // recurrent rate, decay
  no_decay,         // global rate, no decay: biases and norms
  decay,            // global rate, decay
};

/// A recurrent layer: parameters, and their map into a System. Everything else follows from that.
class Layer : public torch::nn::Module {
 public:
  /// The map, differentiable, in double.
  virtual System system() const = 0;

  /// The map for the fused kernels: computed in double, handed out in float32. For float32 layers
  /// on the CPU. `seconds`, when given, is added the wall time of forward and backward.
  virtual System fused_system(int threads, double* seconds = nullptr) const;

  /// The optimiser group of an own parameter, by its name in this module.
  virtual ParameterGroup group(const std::string& parameter) const = 0;

  /// ‖x_t‖₂ from states z [.., 2S], one column for each head; [.., 1] when there are no heads.
  virtual torch::Tensor state_norms(const torch::Tensor& z) const;

  /// Runs the layer over a packed batch by the reference path.
  SystemOutput forward(const Packed& u, const States& initial = {}) const;

  /// The padded form: u [batch, time, D] and the true lengths; y is zero after the end.
  torch::Tensor forward_padded(const torch::Tensor& u, const std::vector<int64_t>& lengths) const;
};

/// The layer that the options name; std::invalid_argument when they cannot be.
std::shared_ptr<Layer> make_layer(const LayerOptions& options, uint64_t seed, uint64_t stream);

}  // namespace rotrnn
