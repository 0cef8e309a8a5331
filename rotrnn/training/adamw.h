#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "rotrnn/model/sequence_model.h"

namespace rotrnn {

/// AdamW (Loshchilov and Hutter 2019) with the learning-rate and decay groups of the network.
///
/// The parameters of the network, their gradients and the moments are moved into four flat arrays,
/// group by group, so that a step is three passes over memory instead of hundreds of small
/// operations. Our own also because a bit-for-bit resume must read and write the moments, and the
/// way to reach them in LibTorch's optimiser changed between 1.13 and 2.x. Tested against
/// LibTorch's.
class AdamW {
 public:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

  /// A parameter with its moments: views of the flat arrays.
  struct Slot {
    std::string name;
    ParameterGroup group;
    torch::Tensor parameter, first, second;
  };

  /// From here on the parameters and gradients of `model` are views of this object's arrays.
  explicit AdamW(torch::nn::Module& model);

  /// One step; `step` counts from 1 and corrects the bias of the moments.
  void step(int64_t step, double global_lr, double recurrent_lr, double weight_decay);

  void zero_grad();
  /// Euclidean norm of the whole gradient.
  double gradient_norm() const;
  void scale_gradients(double factor);

  /// Whether all parameters and moments are.
  bool finite() const;

  const std::vector<Slot>& slots() const { return slots_; }

  /// The whole gradient as one array, and what a step changes: parameters and moments.
  torch::Tensor& gradients() { return gradients_; }
  std::vector<torch::Tensor> state() const { return {values_, first_, second_}; }

 private:
  // Where the parameters of a group are in the flat arrays.
  struct Range {
    ParameterGroup group;
    int64_t begin = 0, size = 0;
  };

  std::vector<Slot> slots_;  // in the order of the network
  std::vector<Range> ranges_;
  torch::Tensor values_, gradients_, first_, second_;
};

}  // namespace rotrnn
