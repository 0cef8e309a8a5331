#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "rotrnn/layers/fused_channels.h"
#include "rotrnn/layers/layer_options.h"
#include "rotrnn/layers/system.h"
#include "rotrnn/spec/parameter.h"

namespace rotrnn {

/// A recurrent layer on packed batches.
class Layer : public torch::nn::Module {
 public:
  /// Runs the layer in ATen operations, on any device and in any precision. `fast`: float32 on the
  /// CPU may take kernels instead. `initial` is for layers with a state that can be given.
  virtual SystemOutput forward(const Packed& u, const States& initial = {},
                               bool fast = false) const = 0;

  /// True when whole networks of it run on the fused kernels (model/fused.h).
  virtual bool fusible() const { return false; }

  /// What the fused kernels run in place of a System, when it is fusible and no
  /// DiagonalLayer. For float32 layers on the CPU. `seconds` as in
  /// DiagonalLayer.
  virtual FusedChannels fused_channels(const Layout& layout, double* seconds = nullptr) const;

  /// The optimiser group of an own parameter, by its name in this module.
  virtual ParameterGroup group(const std::string& parameter) const = 0;

  /// ‖x_t‖₂ from states z [.., 2S], one column for each head; [.., 1] when there are no heads.
  virtual torch::Tensor state_norms(const torch::Tensor& z) const;

  /// The padded form: u [batch, time, D] and the true lengths; y is zero after the end.
  torch::Tensor forward_padded(const torch::Tensor& u, const std::vector<int64_t>& lengths) const;
};

/// A layer that mixes channels: parameters, and their map into a System. The rest follows from it.
class DiagonalLayer : public Layer {
 public:
  /// The map, differentiable, in double.
  virtual System system() const = 0;

  /// The maps of `layers`, all of this one's kind and options, for the fused kernels: computed in
  /// double, handed out in float32. For float32 layers on the CPU. `seconds`, when given, is added
  /// the wall time of forward and backward. A kind with a faster twin of its map overrides this.
  virtual std::vector<System> fused_systems(const std::vector<const DiagonalLayer*>& layers,
                                            int threads, double* seconds = nullptr) const;

  bool fusible() const override { return true; }

  /// The reference path; whole networks are what runs fast.
  SystemOutput forward(const Packed& u, const States& initial = {},
                       bool fast = false) const override;
};

/// The layer as one that maps to a System; std::invalid_argument for one that does not.
DiagonalLayer& diagonal(Layer& layer);

/// The layer that the options name; std::invalid_argument when they cannot be.
std::shared_ptr<Layer> make_layer(const LayerOptions& options, uint64_t seed, uint64_t stream);

}  // namespace rotrnn
