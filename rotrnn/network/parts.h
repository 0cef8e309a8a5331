#pragma once

#include <vector>

#include "rotrnn/network/weights.h"

namespace rotrnn {

/// Where the tensors of a network outside its layers are; null where there is none. Of values and
/// of gradients too.
template <class T>
struct LinearParts {
  T *weight = nullptr, *bias = nullptr;
};

template <class T>
struct NetworkParts {
  struct Block {
    LinearParts<T> norm, value, gate;
    T *running_mean = nullptr, *running_var = nullptr;  // not of gradients
  };
  LinearParts<T> encoder, hidden, head;
  std::vector<Block> blocks;
};

/// Of an array in the layout of the parameters.
NetworkParts<float> parts_of(const WeightLayout& layout, FlatArray& array);

/// Of the weights, with the running statistics.
NetworkParts<float> parts_of(Weights& weights);

}  // namespace rotrnn
