#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "rotrnn/model/sequence_model.h"

namespace rotrnn {

/// AdamW (Loshchilov and Hutter 2019) with the learning-rate and decay groups of the network.
///
/// Our own, because a bit-for-bit resume must read and write the moments, and the way to reach
/// them in LibTorch's optimiser changed between 1.13 and 2.x. Tested against LibTorch's.
class AdamW {
 public:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

  /// A parameter with its moments.
  struct Slot {
    std::string name;
    ParameterGroup group;
    torch::Tensor parameter, first, second;
  };

  explicit AdamW(const torch::nn::Module& model);

  /// One step; `step` counts from 1 and corrects the bias of the moments.
  void step(int64_t step, double global_lr, double recurrent_lr, double weight_decay);

  void zero_grad();
  /// Euclidean norm of the whole gradient.
  double gradient_norm() const;
  void scale_gradients(double factor);

  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  std::vector<Slot> slots_;
};

}  // namespace rotrnn
